package import GatewayModel

extension GatewayError {
    /// What `body` gives; an error that is none of the gateway's own becomes `storage`.
    package static func storing<Value>(_ body: () throws -> Value) throws(GatewayError) -> Value {
        do {
            return try body()
        } catch let error as GatewayError {
            throw error
        } catch {
            throw GatewayError(.storage, "\(error)")
        }
    }
}
