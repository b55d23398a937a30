internal import CountersignCore
internal import CountersignJOSE
internal import Foundation

struct TriggerApp: Sendable {
    static let title = "Requests of countersign trigger"
    static let audience = "countersign-trigger"
    static let issuer = "https://issuer.example"

    static func isOne(_ id: String) -> Bool { id.hasPrefix("trigger-") }

    let id: String
    let writeKey: String
    let key: SigningKey
}

extension TriggerApp {
    /// Nil if the file cannot be read. Throws `failed` if its content is malformed.
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

    /// Stores the app's secrets for later runs, with mode 0600.
    func keep(in path: String) throws {
        let text: JSONValue = [
            "app": .string(id), "write_key": .string(writeKey), "private_key": .string(key.privatePEM),
        ]
        try PrivateFile(creating: path).write(String(decoding: text.bytes, as: UTF8.self))
    }
}
