internal import CountersignCore
internal import CountersignCrypto
internal import CountersignJOSE
internal import Foundation
internal import GatewayModel
internal import GatewayStorage

/// The persistent state of `countersign dev`: a gateway's data with one app, the app's write key, and the key
/// for tokens of its users.
struct DevFolder: Sendable {
    static let appID = "dev"
    private static let operatorName = "developer"

    let path: String
    let writeKey: String
    let key: SigningKey

    init(path: String) async throws {
        self.path = path
        let files = FileManager.default
        try files.createDirectory(
            atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        if !files.fileExists(atPath: path + "/control.sqlite") {
            let ignore = path + "/.gitignore"
            guard try files.contentsOfDirectory(atPath: path).allSatisfy({ $0 == ".gitignore" }) else {
                throw CommandError(
                    .usage, "\(path) contains other files", hint: "--data takes a folder of its own")
            }
            // Git must not commit the keys in this folder.
            if !files.fileExists(atPath: ignore) {
                try Data("*\n".utf8).write(to: URL(fileURLWithPath: ignore))
            }
        }
        let admin = try LocalAdmin(dataDirectory: path)
        let isNew = try await admin.items("apps").contains { $0["id"].text == Self.appID } == false
        if isNew {
            _ = try await admin.post("apps", body: ["id": .string(Self.appID), "name": "Development"])
            _ = try await admin.change("apps", Self.appID, "enforcement") {
                $0["state"] = .string(Enforcement.required.rawValue)
            }
        }

        let keyPath = path + "/private.pem"
        if !files.fileExists(atPath: keyPath) {
            try PrivateFile(creating: keyPath).write(SigningKey.generate(.rs256).privatePEM)
        }
        key = try SigningKey(pem: String(contentsOfFile: keyPath, encoding: .utf8))
        try Data(key.publicKey.pem.utf8).write(to: URL(fileURLWithPath: path + "/public.pem"))
        let keys = try await admin.items("apps", Self.appID, "keys")
        if !keys.contains(where: { [id = key.publicKey.thumbprint] in $0["id"].text == id }) {
            _ = try await admin.post(
                "apps", Self.appID, "keys",
                body: ["text": .string(key.publicKey.pem), "description": "signs for countersign dev"])
        }

        let writeKeyPath = path + "/write-key"
        if !files.fileExists(atPath: writeKeyPath) {
            let made = try await admin.post(
                "apps", Self.appID, "write-keys", body: ["description": "countersign dev"])
            try PrivateFile(creating: writeKeyPath).write(made["write_key"].text ?? "")
        }
        writeKey = try String(contentsOfFile: writeKeyPath, encoding: .utf8)
    }

    func admin() throws -> LocalAdmin { try LocalAdmin(dataDirectory: path) }

    /// Allows pages of these origins to call the app, in addition to those allowed by the developer. Removes
    /// the origins of the previous run, which may have used other ports.
    func allow(_ origins: [String]) async throws {
        let admin = try admin()
        let known = try await admin.get("apps", Self.appID).body["origins"].elements.compactMap(\.text)
        let file = path + "/origins.json"
        let before =
            FileManager.default.contents(atPath: file).flatMap { JSONValue(parsing: [UInt8]($0)) }?
            .elements.compactMap(\.text) ?? []
        let others = known.filter { !before.contains($0) }
        let own = origins.filter { !others.contains($0) }
        guard others + own != known else { return }
        func record(_ origins: [String]) throws {
            let text = JSONValue.array(origins.map { .string($0) }).bytes
            try Data(text).write(to: URL(fileURLWithPath: file), options: .atomic)
        }
        // Until the change succeeds, the app may have the origins of either run.
        try record(before + own)
        _ = try await admin.patch(
            "apps", Self.appID, body: ["origins": .array((others + own).map { .string($0) })])
        try record(own)
    }

    /// Opens a dashboard session. Returns the token for its cookie.
    func openSignInSession() throws -> String {
        let admins = try AppDirectory(dataDirectory: path).admins
        if try !admins.users().contains(where: { $0.name == Self.operatorName }) {
            // No password matches `ofNobody`, so only the link of `countersign dev` can sign in.
            try admins.createUser(
                name: Self.operatorName, role: .owner, password: .ofNobody(cost: .password))
        }
        return try admins.openSignInSession(for: Self.operatorName, at: Milliseconds(Date()).count)
    }
}
