internal import CountersignCore
internal import CountersignJOSE
internal import Foundation
internal import GatewayModel
internal import GatewayStorage

/// An app of `countersign trigger`. Its secrets lie beside the data, mode 0600.
struct TriggerApp: Sendable {
    let id: String
    let writeKey: String
    /// The private key that its tokens are signed with.
    let key: SigningKey

    /// Finds the app in the data directory, or makes it. Throws `failed` when its secrets cannot be read, what the data
    /// directory says, and what `prepare` throws.
    init(
        id name: String, in dataDirectory: String,
        prepare: (AppDirectory, String, SigningKey) throws -> Void
    ) throws {
        let path = "\(dataDirectory)/\(name).json"
        if let text = FileManager.default.contents(atPath: path) {
            let root = JSONValue(parsing: [UInt8](text))
            guard let app = root?["app"].text, let writeKey = root?["write_key"].text,
                let pem = root?["private_key"].text
            else {
                throw CommandError(
                    .failed, "\(path) cannot be read", hint: "delete it, and another app is made")
            }
            id = app
            self.writeKey = writeKey
            key = try SigningKey(pem: pem)
            return
        }
        let directory = try AppDirectory(dataDirectory: dataDirectory)
        let taken = Set(try directory.apps().map(\.id))
        let free = ([name] + (2...1_000).map { "\(name)-\($0)" }).first { !taken.contains($0) }
        let made = try directory.createApp(id: free ?? name, name: "Requests of countersign trigger")
        id = made.app.id
        writeKey = made.writeKey
        key = try SigningKey.generate(.rs256)
        try prepare(directory, id, key)
        let text: JSONValue = [
            "app": .string(id), "write_key": .string(writeKey), "private_key": .string(key.privatePEM),
        ]
        try PrivateFile(creating: path).write(String(decoding: text.bytes, as: UTF8.self))
    }
}
