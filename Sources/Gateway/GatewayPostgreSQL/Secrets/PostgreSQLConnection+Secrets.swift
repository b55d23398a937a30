package import GatewayStorage

/// Encrypts secrets with the token key, which is never in the database.
extension PostgreSQLConnection {
    /// Returns the secret unchanged if there is no token key.
    package func sealed(_ secret: [UInt8], _ column: SecretColumn, _ key: String...) throws -> [UInt8] {
        try tokenKey?().sealed(secret, column, key) ?? secret
    }

    package func opened(_ stored: [UInt8], _ column: SecretColumn, _ key: String...) throws -> [UInt8] {
        guard TokenKeySeal.isSealed(stored) else { return stored }
        guard let secret = try tokenKey?().opened(stored, column, key) else {
            throw column.notOpened(key)
        }
        return secret
    }
}
