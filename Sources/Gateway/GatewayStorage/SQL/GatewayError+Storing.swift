package import GatewayModel

extension GatewayError {
    /// Converts errors of `body` to `storage`, except for the gateway's own errors.
    package static func storing<Value>(_ body: () throws -> Value) throws(GatewayError) -> Value {
        do {
            return try body()
        } catch let error as GatewayError {
            throw error
        } catch {
            let isFull = (error as? any StorageError)?.isFull == true
            throw GatewayError(
                .storage,
                isFull ? "the disk is full; make room, then try again" : "\(error)")
        }
    }
}
