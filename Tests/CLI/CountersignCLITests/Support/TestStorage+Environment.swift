import CountersignGatewayTesting
import GatewayModel

extension TestStorage {
    /// The variables that make commands use this data directory or database.
    var environment: [String: String] {
        var environment = ["COUNTERSIGN_DATA": folder]
        environment["COUNTERSIGN_DATABASE"] = address?.text
        return environment
    }
}
