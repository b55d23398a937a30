import Countersign
import CountersignGateway
import CountersignGatewayTesting
import Foundation
import Testing

extension GatewayFixture {
    /// Of an app that sends to this gateway and keeps its files beside the gateway's.
    func configuration() throws -> CountersignConfiguration {
        var configuration = CountersignConfiguration(
            endpoint: try #require(URL(string: "http://127.0.0.1:\(gateway.port)")), writeKey: writeKey)
        configuration.dataDirectory = URL(fileURLWithPath: dataDirectory).appendingPathComponent("device")
        return configuration
    }
}
