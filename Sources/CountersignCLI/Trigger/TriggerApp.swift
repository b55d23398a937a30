internal import CountersignCore
internal import CountersignJOSE
internal import Foundation

/// An app of `countersign trigger`.
struct TriggerApp: Sendable {
    /// What it is called in lists.
    static let title = "Requests of countersign trigger"

    /// Whether an id is one that `trigger` has given.
    static func isOne(_ id: String) -> Bool { id.hasPrefix("trigger-") }

    let id: String
    let writeKey: String
    /// The private key that its tokens are signed with.
    let key: SigningKey
}

extension TriggerApp {
    /// The app whose secrets lie in a file beside the data; nil when there is no such file. Throws `failed` when it cannot be
    /// read.
    init?(keptIn path: String) throws {
        guard let text = FileManager.default.contents(atPath: path) else { return nil }
        let root = JSONValue(parsing: [UInt8](text))
        guard let app = root?["app"].text, let writeKey = root?["write_key"].text,
            let pem = root?["private_key"].text
        else {
            throw CommandError(
                .failed, "\(path) cannot be read", hint: "delete it, and a new app is created")
        }
        self.init(id: app, writeKey: writeKey, key: try SigningKey(pem: pem))
    }

    /// Keeps the app's secrets for the next time, mode 0600.
    func keep(in path: String) throws {
        let text: JSONValue = [
            "app": .string(id), "write_key": .string(writeKey), "private_key": .string(key.privatePEM),
        ]
        try PrivateFile(creating: path).write(String(decoding: text.bytes, as: UTF8.self))
    }
}
