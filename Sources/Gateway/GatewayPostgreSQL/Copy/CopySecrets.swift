internal import CountersignCore
internal import CountersignSQLite
internal import GatewayStorage

/// Encrypts or decrypts the secrets of copied rows. A database stores them encrypted, a data directory as plain text.
struct CopySecrets {
    private static let tokenKeys: BytewiseDictionary = ["refresh_key": "key", "signing_key": "pem"]

    let table: CopyTable

    func sealed(_ rows: [[SQLValue]], _ key: TokenKeySeal) throws -> [[SQLValue]] {
        try map(rows, token: { try key.seal.seal($0) }) { secret, column, row in
            column.isSecret(row) ? key.sealed(secret, column, row) : secret
        }
    }

    func opened(_ rows: [[SQLValue]], _ key: TokenKeySeal) throws -> [[SQLValue]] {
        try map(
            rows,
            token: { value in
                switch value {
                case .text(let text):
                    .text(String(decoding: try key.seal.open(Array(text.utf8)), as: UTF8.self))
                case .blob(let bytes): .blob(try key.seal.open(bytes))
                case .null, .integer, .real: value
                }
            }
        ) { stored, column, row in
            guard let secret = key.opened(stored, column, row) else { throw column.notOpened(row) }
            return secret
        }
    }

    private func map(
        _ rows: [[SQLValue]], token: (SQLValue) throws -> SQLValue,
        secret: ([UInt8], SecretColumn, [String]) throws -> [UInt8]
    ) throws -> [[SQLValue]] {
        if let name = Self.tokenKeys[table.name] {
            return try rows.map { row in
                var row = row
                row[table.place(of: name)] = try token(row[table.place(of: name)])
                return row
            }
        }
        guard let column = SecretColumn.all.first(where: { $0.table == table.name }) else { return rows }
        let place = table.place(of: column.column)
        return try rows.map { row in
            let key = column.key.map { Self.text(row[table.place(of: $0)]) }
            let stored: [UInt8] =
                switch row[place] {
                case .text(let text): Array(text.utf8)
                case .blob(let bytes): bytes
                case .null, .integer, .real: []
                }
            var row = row
            row[place] = column.value(try secret(stored, column, key))
            return row
        }
    }

    private static func text(_ value: SQLValue) -> String {
        switch value {
        case .text(let text): text
        case .integer(let number): String(number)
        case .null, .real, .blob: ""
        }
    }
}
