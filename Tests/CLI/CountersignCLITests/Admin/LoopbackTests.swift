import Testing

@testable import CountersignCLI

/// Hosts to which a token may be sent over plain HTTP.
struct LoopbackTests {
    @Test(arguments: ["localhost", "127.0.0.1", "127.1.2.3", "::1", "[::1]"])
    func loopbackHostsMayUsePlainHTTP(host: String) throws {
        #expect(Loopback.isHost(host))
        _ = try RemoteAdmin.Server(url: "http://\(host.contains("::") ? "[::1]" : host):1").checked()
    }

    @Test(arguments: ["127.example.com", "127.0.0.1.example.com", "localhost.example.com", "128.0.0.1"])
    func otherHostsAreNotLoopbackAndNeedHTTPS(host: String) {
        #expect(!Loopback.isHost(host))
        #expect(throws: CommandError.self) {
            try RemoteAdmin.Server(url: "http://\(host)").checked()
        }
    }
}
