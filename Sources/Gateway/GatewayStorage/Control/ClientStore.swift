internal import CountersignCore
internal import CountersignCrypto
internal import CountersignJOSE
internal import CountersignSQLite
package import Foundation
public import GatewayModel

/// Stores the clients of the token service. A running gateway loads a change within a second.
public struct ClientStore: ControlStore {
    package let database: any SQLDatabase
    package let actor: Operator
    package let now: @Sendable () -> Date

    /// Creates a client that authenticates with a secret or with signed assertions.
    ///
    /// - Parameters:
    ///   - appID: The app that the tokens are for.
    ///   - name: The display name.
    ///   - publicKey: An RSA key of 2048 to 8192 bits, as PEM or JWK, that verifies assertions (RFC 7523,
    ///     section 2.2). Nil creates a secret instead.
    ///   - grants: The allowed grant types; at least one.
    /// - Returns: The client and its secret. The secret is shown only once, because only its hash is stored.
    ///   The secret is nil for a client with a key.
    /// - Throws: `invalid` for an unusable key or empty grants, `notFound`, `storage`.
    public func create(
        of appID: String, name: String, publicKey: String? = nil,
        grants: Set<OAuthClient.Grant> = Set(OAuthClient.Grant.allCases)
    ) throws(GatewayError) -> (client: OAuthClient, secret: String?) {
        guard !grants.isEmpty else { throw GatewayError(.invalid, "a client needs at least one grant") }
        if let publicKey {
            do {
                _ = try PublicKey(text: publicKey, algorithm: .rs256)
            } catch {
                throw GatewayError(.invalid, error.reason)
            }
        }
        let secret = publicKey == nil ? "css_" + Base64URL.encode(.random(count: 32)) : nil
        let client = OAuthClient(
            id: "client_" + Base64URL.encode(.random(count: 12)), appID: appID, name: name, grants: grants,
            publicKey: publicKey, createdMilliseconds: nowMilliseconds,
            secretHash: secret.map { SHA256.digest($0) })
        try write {
            try Self.checkApp(appID, $0)
            try audit($0, "client.create", client.id, app: client.appID, after: client.json)
            try $0.run(
                """
                INSERT INTO oauth_client (id, app_id, name, secret_hash, public_key, grants, created_ms)
                VALUES (?, ?, ?, ?, ?, ?, ?)
                """, .text(client.id),
                .text(client.appID), .text(client.name), client.secretHash.map { .blob($0) } ?? .null,
                .optionalText(client.publicKey),
                .text(grants.map(\.rawValue).sorted().joined(separator: " ")),
                .integer(client.createdMilliseconds))
        }
        return (client, secret)
    }

    /// An app's clients, in the order of creation.
    ///
    /// - Throws: `notFound`, `storage`.
    public func all(of appID: String) throws(GatewayError) -> [OAuthClient] {
        try read { connection in
            try Self.checkApp(appID, connection)
            return try Self.clients(connection).filter { $0.appID == appID }
        }
    }

    /// Deletes a client. The gateway then rejects all access tokens issued to the client, including tokens of users.
    ///
    /// - Throws: `notFound`, `storage`.
    public func delete(id: String) throws(GatewayError) {
        try write { connection in
            let client = try Self.clients(connection).first { $0.id == id }
            try connection.run("DELETE FROM oauth_client WHERE id = ?", .text(id))
            guard let client else {
                throw GatewayError(
                    .notFound, "there is no client \(id)")
            }
            try audit(connection, "client.delete", id, app: client.appID, before: client.json)
        }
    }

    package func all() throws(GatewayError) -> [OAuthClient] { try read { try Self.clients($0) } }

    private static func clients(_ connection: any SQLConnection) throws -> [OAuthClient] {
        try connection.all(
            """
            SELECT id, app_id, name, secret_hash, public_key, grants, created_ms FROM oauth_client
            ORDER BY created_ms, id
            """
        ) { row in
            OAuthClient(
                id: row.text(0), appID: row.text(1), name: row.text(2),
                grants: Set(row.text(5).split(separator: " ").compactMap { .init(rawValue: String($0)) }),
                publicKey: row.optionalText(4), createdMilliseconds: row.int64(6),
                secretHash: row.isNull(3) ? nil : row.blob(3))
        }
    }
}
