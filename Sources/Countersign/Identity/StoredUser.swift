internal import Foundation

/// Who the user is, between two runs of the app: a file beside the queue, with one user for each write key.
///
/// It is read before the first event is recorded, on the caller's thread, as the first event belongs to that user already.
/// Processes that share the queue share it: the last one that changed its user decides who the next start begins with.
struct StoredUser: Sendable {
    private struct Content: Codable {
        /// By write key: the app of another key has other users.
        var users: [String: String] = [:]
    }

    private let path: String
    private let writeKey: String

    init(directory: URL, writeKey: String) {
        path = directory.appendingPathComponent("user.json").path
        self.writeKey = writeKey
    }

    /// Returns nil if there is none; what is damaged counts as none.
    func load() -> String? {
        content.users[writeKey].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Nil removes the user. To be called on the storage thread.
    func save(_ userID: String?) throws {
        var content = content
        guard content.users[writeKey].map({ Array($0.utf8) }) != userID.map({ Array($0.utf8) }) else {
            return
        }
        content.users[writeKey] = userID
        try DurableFile.write(try JSONEncoder().encode(content), to: path)
        #if os(iOS)
            // Also before the first unlock: an event that is recorded then has its user. The queue names users too.
            try FileManager.default.setAttributes(
                [.protectionKey: FileProtectionType.none], ofItemAtPath: path)
        #endif
    }

    /// Removes the users of all write keys. To be called on the storage thread.
    func removeAll() throws {
        if FileManager.default.fileExists(atPath: path) { try FileManager.default.removeItem(atPath: path) }
    }

    private var content: Content {
        FileManager.default.contents(atPath: path).flatMap {
            try? JSONDecoder().decode(Content.self, from: $0)
        } ?? Content()
    }
}
