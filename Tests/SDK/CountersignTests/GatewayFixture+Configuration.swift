import Countersign
import CountersignGateway
import CountersignGatewayTesting
import Foundation
import Testing

extension GatewayFixture {
    /// The configuration of an app that sends to this gateway. Its files are in the gateway's data directory.
    func configuration() throws -> CountersignConfiguration {
        var configuration = CountersignConfiguration(
            endpoint: try #require(URL(string: "http://127.0.0.1:\(gateway.port)")), writeKey: writeKey)
        configuration.dataDirectory = URL(fileURLWithPath: dataDirectory).appendingPathComponent("device")
        return configuration
    }
}
