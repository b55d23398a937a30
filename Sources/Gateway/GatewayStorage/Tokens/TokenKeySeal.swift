internal import CountersignCrypto
internal import CountersignSQLite
internal import Foundation
package import GatewayModel

/// Encrypts keys and other secrets in a shared database. The token key itself is only in a file of each gateway.
package struct TokenKeySeal: Sendable {
    package let path: String
    private let key: [UInt8]

    /// Reads a line of base64url; nil without a file. Throws `invalid` without a key, `dataDirectory` if unreadable.
    package init?(file path: String) throws(GatewayError) {
        guard FileManager.default.fileExists(atPath: path) else { return nil }
        guard let bytes = FileManager.default.contents(atPath: path) else {
            throw GatewayError(.dataDirectory, "cannot read the file of the token key, \(path)")
        }
        let text = String(decoding: bytes.prefix(1_000), as: UTF8.self).trimmingCharacters(
            in: .whitespacesAndNewlines)
        guard let key = Base64URL.decode(text), key.count == AES256GCM.keyBytes else {
            throw GatewayError(
                .invalid,
                "\(path) holds no token key, which is \(AES256GCM.keyBytes) bytes in base64url; copy the file of another gateway"
            )
        }
        self.path = path
        self.key = key
    }

    /// Creates a file with mode 0600, and its folder. Uses the file of another gateway that was created meanwhile.
    package init(making path: String) throws(GatewayError) {
        let key = [UInt8].random(count: AES256GCM.keyBytes)
        let folder = URL(fileURLWithPath: path).deletingLastPathComponent().path
        // Written under another name first, so that other gateways never see an incomplete file.
        let draft = path + "." + UUID().uuidString
        defer { unlink(draft) }
        do {
            try FileManager.default.createDirectory(
                atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            throw GatewayError(.dataDirectory, "cannot create the folder of the token key, \(path)")
        }
        let descriptor = open(draft, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw Self.notMade(path) }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        do {
            try file.write(contentsOf: Data((Base64URL.encode(key) + "\n").utf8))
            try file.synchronize()
        } catch {
            throw GatewayError(.dataDirectory, "cannot write the file of the token key, \(path)")
        }
        guard link(draft, path) == 0 || errno == EEXIST else { throw Self.notMade(path) }
        // A power failure must not delete the file after the database has secrets that the key seals.
        errno = synchronizeFile(folder)
        guard errno == 0, let made = try TokenKeySeal(file: path) else { throw Self.notMade(path) }
        self = made
    }

    private static func notMade(_ path: String) -> GatewayError {
        GatewayError(
            .dataDirectory,
            "cannot create the file of the token key, \(path): \(String(cString: strerror(errno)))")
    }

    /// Encrypts text and blobs as base64url; decrypting returns bytes. Throws `conflict` for another key.
    package var seal: TokenSecrets.Seal {
        TokenSecrets.Seal(
            seal: { secret in
                switch secret {
                case .text(let text): .text(sealed(Array(text.utf8)))
                case .blob(let bytes): .blob(Array(sealed(bytes).utf8))
                case .null, .integer, .real: throw GatewayError(.storage, "a secret must be a text or a blob")
                }
            },
            open: { stored in
                guard let sealed = Base64URL.decode(String(decoding: stored, as: UTF8.self)),
                    let bytes = AES256GCM.open(sealed, key: key, context: Self.context)
                else {
                    throw GatewayError(
                        .conflict,
                        "the key in \(path) does not open the token keys in the database; copy the file of the gateway "
                            + "that made them")
                }
                return bytes
            })
    }

    /// Encrypts a text. Decryption requires the same `context`.
    package func sealed(_ text: String, as context: String) -> String {
        Base64URL.encode(AES256GCM.seal(Array(text.utf8), key: key, context: Array(context.utf8)))
    }

    /// Decrypts a text. Nil if it was encrypted with another key or context.
    package func opened(_ sealed: String, as context: String) -> String? {
        Base64URL.decode(sealed).flatMap { AES256GCM.open($0, key: key, context: Array(context.utf8)) }
            .map { String(decoding: $0, as: UTF8.self) }
    }

    // MARK: Secrets in columns

    package static let prefix = "sealed:"

    /// Encrypts a secret for a row and column. Decryption fails for any other row or column.
    package func sealed(_ secret: [UInt8], _ column: SecretColumn, _ key: [String]) -> [UInt8] {
        let context = Self.context(column, key)
        return Array(
            (Self.prefix + Base64URL.encode(AES256GCM.seal(secret, key: self.key, context: context))).utf8)
    }

    /// Decrypts a secret. Nil if it was encrypted with another key or for another row. Returns plain secrets unchanged.
    package func opened(_ stored: [UInt8], _ column: SecretColumn, _ key: [String]) -> [UInt8]? {
        guard Self.isSealed(stored) else { return stored }
        return Base64URL.decode(String(decoding: stored.dropFirst(Self.prefix.utf8.count), as: UTF8.self))
            .flatMap { AES256GCM.open($0, key: self.key, context: Self.context(column, key)) }
    }

    package static func isSealed(_ stored: [UInt8]) -> Bool { stored.starts(with: prefix.utf8) }

    /// Includes the length of each key value, so that different rows have different contexts.
    private static func context(_ column: SecretColumn, _ key: [String]) -> [UInt8] {
        let row = key.map { "\($0.utf8.count):\($0)" }.joined()
        return Array("countersign secret \(column.table).\(column.column) \(row)".utf8)
    }

    private static let context = Array("countersign token key".utf8)

    private func sealed(_ bytes: [UInt8]) -> String {
        Base64URL.encode(AES256GCM.seal(bytes, key: key, context: Self.context))
    }
}
