#if !NATS
    import GatewayModel
    import Testing

    @testable import CountersignGateway

    /// Streams in a build without COUNTERSIGN_NATS=1.
    struct StreamBuildTests {
        @Test func buildWithoutNATSNamesTheRemedy() throws {
            let sink = try StreamBench().sink()
            let error = #expect(throws: StreamError.self) { try Delivery.connect(sink) }
            #expect(error?.code == .notBuilt)
            #expect(error?.reason.contains("build it with COUNTERSIGN_NATS=1") == true)
        }
    }
#endif
