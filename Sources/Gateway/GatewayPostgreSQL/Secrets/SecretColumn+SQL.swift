internal import CountersignCore
internal import CountersignSQLite
internal import GatewayModel
internal import GatewayStorage

extension SecretColumn {
    /// An SQL expression for the number of plain secrets.
    static let countOfOpen = all.map { "(SELECT count(*) FROM \($0.table) WHERE \($0.isOpen))" }
        .joined(separator: " + ")

    /// An SQL condition for rows with a plain secret. Compares bytes in their text representation.
    var isOpen: String {
        let mark = TokenKeySeal.mark
        let shown = isText ? mark : "\\x" + Array(mark.utf8).hexadecimal
        let isOpen = "NOT starts_with(\(column)::text, '\(shown)')"
        let names = Self.settings.map { "'\($0)'" }.joined(separator: ", ")
        return table == Self.setting.table ? isOpen + " AND name IN (\(names))" : isOpen
    }

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
