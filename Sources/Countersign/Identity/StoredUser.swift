internal import Foundation

/// Who the user is, between two runs of the app, and who has logged out: a file beside the queue, with the users of each write
/// key.
///
/// It is read before the first event is recorded, on the caller's thread, as the first event belongs to that user already.
/// Processes that share the queue share it: the last one that changed its user decides who the next start begins with.
struct StoredUser: Sendable {
    /// How far a log-out is.
    enum Departure: String, Codable {
        /// What is left is being sent, and then the user's token is forgotten.
        case leaving
        /// That is done, and has left events, which wait for another token.
        case left
        /// The app has handed over a token meanwhile, in this process or another: that one stays.
        case back
    }

    private struct Content: Codable {
        struct Entry: Codable {
            let user: String
            let departure: Departure
            /// Of `leaving`: in which client, by its `LeaseHolder`.
            let holder: String
        }

        /// By write key: the app of another key has other users.
        var users: [String: String] = [:]
        /// By write key. Nil in files of earlier versions.
        var departures: [String: [Entry]]?
    }

    /// What the file has of one write key while nobody else can change it.
    struct Draft {
        private let path: String
        private let writeKey: String
        private var content: Content
        private var isChanged = false

        fileprivate init(path: String, writeKey: String) {
            self.path = path
            self.writeKey = writeKey
            content =
                FileManager.default.contents(atPath: path).flatMap {
                    try? JSONDecoder().decode(Content.self, from: $0)
                } ?? Content()
        }

        /// Nil for none.
        var userID: String? {
            get { content.users[writeKey].flatMap { $0.isEmpty ? nil : $0 } }
            set {
                guard content.users[writeKey].map({ Array($0.utf8) }) != newValue.map({ Array($0.utf8) })
                else { return }
                content.users[writeKey] = newValue
                isChanged = true
            }
        }

        private var entries: [Content.Entry] { content.departures?[writeKey] ?? [] }

        /// Whose log-out no process has finished.
        var leaving: [String] { entries.filter { $0.departure == .leaving }.map(\.user) }

        private func entry(of userID: String) -> Content.Entry? {
            entries.first { $0.user.utf8.elementsEqual(userID.utf8) }
        }

        /// Nil if the user has not logged out, or has had a token since.
        func departure(of userID: String) -> Departure? { entry(of: userID)?.departure }

        /// Whether the user is logging out in another client than this one.
        func isLeavingElsewhere(_ userID: String, than holder: String) -> Bool {
            entry(of: userID).map { $0.departure == .leaving && $0.holder != holder } ?? false
        }

        /// The user logs out in this client. Whoever has left events that wait stays as one who has.
        mutating func beginLeaving(_ userID: String, holder: String) {
            if departure(of: userID) != .left { set(.leaving, of: userID, holder: holder) }
        }

        mutating func setDeparture(_ departure: Departure?, of userID: String) {
            set(departure, of: userID, holder: "")
        }

        private mutating func set(_ departure: Departure?, of userID: String, holder: String) {
            let before = entry(of: userID)
            guard departure != before?.departure || holder != before?.holder ?? "" else { return }
            var entries = entries.filter { !$0.user.utf8.elementsEqual(userID.utf8) }
            if let departure {
                entries.append(Content.Entry(user: userID, departure: departure, holder: holder))
            }
            content.departures = content.departures ?? [:]
            content.departures?[writeKey] = entries.isEmpty ? nil : entries
            isChanged = true
        }

        /// Makes what has changed so far durable.
        mutating func write() throws {
            guard isChanged else { return }
            try DurableFile.write(try JSONEncoder().encode(content), to: path)
            #if os(iOS)
                // Also before the first unlock: an event that is recorded then has its user. The queue names users too.
                try FileManager.default.setAttributes(
                    [.protectionKey: FileProtectionType.none], ofItemAtPath: path)
            #endif
            isChanged = false
        }
    }

    private let path: String
    private let lockPath: String
    private let writeKey: String

    init(directory: URL, writeKey: String) {
        path = directory.appendingPathComponent("user.json").path
        lockPath = directory.appendingPathComponent("user.lock").path
        self.writeKey = writeKey
    }

    /// As of now; what is damaged counts as nothing.
    func load() -> Draft { Draft(path: path, writeKey: writeKey) }

    /// Changes the file while no other process does. To be called on the storage thread.
    func change<Result>(_ body: (inout Draft) throws -> Result) throws -> Result {
        try FileLock.withLock(at: lockPath) {
            var draft = load()
            let result = try body(&draft)
            try draft.write()
            return result
        }
    }

    /// Removes the users of all write keys. To be called on the storage thread.
    func removeAll() throws {
        try FileLock.withLock(at: lockPath) {
            guard FileManager.default.fileExists(atPath: path) else { return }
            try FileManager.default.removeItem(atPath: path)
        }
    }
}
