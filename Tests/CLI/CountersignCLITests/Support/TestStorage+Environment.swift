import CountersignGatewayTesting
import GatewayModel

extension TestStorage {
    /// Has commands work here, without a server.
    var environment: [String: String] {
        var environment = ["COUNTERSIGN_DATA": folder]
        environment["COUNTERSIGN_DATABASE"] = address?.text
        return environment
    }
}
