#if !NATS
    import GatewayModel
    import Testing

    @testable import CountersignGateway

    /// Streams in a build without COUNTERSIGN_NATS=1.
    struct StreamBuildTests {
        @Test func buildWithoutNATSNamesTheRemedy() throws {
            let settings = try StreamBench().create()
            let error = #expect(throws: StreamError.self) { try Delivery.connect(settings) }
            #expect(error?.code == .notBuilt)
            #expect(error?.reason.contains("build it with COUNTERSIGN_NATS=1") == true)
        }
    }
#endif
