internal import CountersignCore
internal import CountersignSQLite
internal import GatewayModel
internal import GatewayStorage

extension SecretColumn {
    func value(_ bytes: [UInt8]) -> SQLValue {
        isText ? .text(String(decoding: bytes, as: UTF8.self)) : .blob(bytes)
    }

    func notOpened(_ key: [String]) -> GatewayError {
        GatewayError(
            .conflict,
            "a secret in the database (\(table) \(key.joined(separator: " "))) was sealed with another token key or in "
                + "another row; copy the file of the token key from the gateway that made it, or set the secret again"
        )
    }
}
