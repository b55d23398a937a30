internal import CountersignCore
internal import Foundation

/// Stores the current user and the log-outs (see `LogOut`), in two files in the queue's directory.
///
/// The first file has an `Identity`, of one write key. `Recorder` writes it before the events of that user. The client
/// reads it on the caller's thread, before the first event. The second file, `user.json`, has the log-outs by write
/// key. Processes that share the queue share both files. The user set last by any process is the initial user of the
/// next start.
struct StoredUser: Sendable {
    struct Identity: Codable, Sendable {
        struct UnwrittenLogOut: Codable, Sendable {
            let user: String
            let isSigned: Bool
        }

        var user: String?
        /// Whether the app has set a token for this user. If true, the user's events wait while no token is stored.
        var isSigned = false
        /// Log-outs that are not yet in `user.json`.
        var logOuts: [UnwrittenLogOut] = []

        /// Nil if there is neither a user nor a log-out.
        var bytes: [UInt8]? {
            guard user != nil || !logOuts.isEmpty else { return nil }
            return (try? JSONEncoder().encode(self)).map { Array($0) }
        }

        /// Users whose events wait while the token store has no token for them.
        var signedUsers: Set<UserKey> {
            Set(logOuts.filter(\.isSigned).map { UserKey($0.user) } + (isSigned ? [UserKey(user)] : []))
        }

        /// Resets the identity, including `logOuts`, if `userID` is another user.
        mutating func change(to userID: String?) {
            if UserKey(user) != UserKey(userID) { self = Identity(user: userID) }
        }

        /// Sets the user. A token (`isSigned`) ends the user's log-out.
        mutating func set(_ userID: String, isSigned: Bool) {
            user = userID
            self.isSigned = isSigned
            if isSigned { remove(logOutOf: userID) }
        }

        mutating func logOut() {
            if let user { logOuts.append(UnwrittenLogOut(user: user, isSigned: isSigned)) }
            user = nil
            isSigned = false
        }

        mutating func remove(logOutOf userID: String) {
            logOuts.removeAll { UserKey($0.user) == UserKey(userID) }
        }
    }

    private struct Content: Codable {
        /// The current users, in files of earlier versions.
        var users: [String: String]?
        /// The log-outs by write key. Nil in files of earlier versions.
        var logOuts: [String: [LogOut]]?

        enum CodingKeys: String, CodingKey {
            case users
            case logOuts = "departures"
        }
    }

    /// The entries of one write key in `user.json`. Changes are in memory until `write()`.
    struct Draft {
        private let path: String
        private let writeKey: String
        private let check: () throws -> Void
        private var content = Content()
        private var isChanged = false
        /// Whether this draft replaces a damaged file.
        private(set) var isReplacement = false

        fileprivate init(
            path: String, writeKey: String, replacesDamaged: Bool = false, check: @escaping () throws -> Void
        ) throws {
            self.path = path
            self.writeKey = writeKey
            self.check = check
            do {
                let data = try Data(contentsOf: URL(fileURLWithPath: path))
                content = try JSONDecoder().decode(Content.self, from: data)
            } catch let error as CocoaError where error.code == .fileReadNoSuchFile {
                // No user has logged out.
            } catch is DecodingError where replacesDamaged {
                (isReplacement, isChanged) = (true, true)
            }
        }

        /// Whether an earlier version of the SDK has stored the current user in this file.
        var hasFormerUser: Bool { content.users?[writeKey] != nil }

        fileprivate var formerUser: String? {
            content.users?[writeKey].flatMap { $0.isEmpty ? nil : $0 }
        }

        fileprivate mutating func removeFormerUser() {
            guard content.users?[writeKey] != nil else { return }
            content.users?[writeKey] = nil
            isChanged = true
        }

        var logOuts: [LogOut] { content.logOuts?[writeKey] ?? [] }

        /// Nil if the user is signed in or was never set.
        func logOut(of userID: String) -> LogOut? {
            logOuts.first { $0.user.utf8.elementsEqual(userID.utf8) }
        }

        mutating func set(_ logOut: LogOut?, of userID: String) {
            guard logOut != self.logOut(of: userID) else { return }
            var logOuts = logOuts.filter { !$0.user.utf8.elementsEqual(userID.utf8) }
            if let logOut { logOuts.append(logOut) }
            content.logOuts = content.logOuts ?? [:]
            content.logOuts?[writeKey] = logOuts.isEmpty ? nil : logOuts
            isChanged = true
        }

        var loggingOut: [String] { logOuts.filter { $0.state == .loggingOut }.map(\.user) }

        var loggedOut: [String] { logOuts.filter { $0.state == .loggedOut }.map(\.user) }

        func isLoggedOut(_ userID: String) -> Bool { logOut(of: userID)?.state == .loggedOut }

        mutating func beginLogOut(of userID: String, in client: String) {
            set(LogOut.begin(userID, in: client, from: logOut(of: userID)), of: userID)
        }

        /// Makes the log-out durable.
        mutating func writeLoggedOut(_ userID: String) throws {
            set(LogOut(user: userID, state: .loggedOut), of: userID)
            try write()
        }

        /// Throws if another process has taken over the lock. Call before changing anything other than this file.
        func checkLock() throws { try check() }

        mutating func write() throws {
            guard isChanged else { return }
            try DurableFile.writeOrOverwrite(try JSONEncoder().encode(content), to: path, check: check)
            #if os(iOS)
                // Readable before the first unlock, because the client reads log-outs when it starts.
                try FileManager.default.setAttributes(
                    [.protectionKey: FileProtectionType.none], ofItemAtPath: path)
            #endif
            isChanged = false
        }
    }

    static let prefix = "user-"

    /// The file with the `Identity`, which `Recorder` writes.
    let file: SlotFile
    private let directory: URL
    private let path: String
    private let lockPath: String
    private let writeKey: String

    init(directory: URL, writeKey: String) {
        self.directory = directory
        path = directory.appendingPathComponent("user.json").path
        lockPath = directory.appendingPathComponent("user.lock").path
        self.writeKey = writeKey
        let hash = String(DataFolder.hash(writeKey.utf8), radix: 16)
        file = SlotFile(
            path: directory.appendingPathComponent(Self.prefix + hash).path, isProtected: false)
    }

    /// A damaged or unreadable file counts as no user. `isFormer` is true if an earlier version stored the user.
    func loadIdentity() -> (identity: Identity, isFormer: Bool) {
        switch file.content {
        case .missing:
            let user = (try? load())?.formerUser
            return (Identity(user: user), user != nil)
        case .value(let bytes):
            return ((try? JSONDecoder().decode(Identity.self, from: Data(bytes))) ?? Identity(), false)
        case .inaccessible, .unreadable: return (Identity(), false)
        }
    }

    /// Reads `user.json`. Throws if the file is damaged or cannot be read now, because events of logged-out users must
    /// wait.
    func load() throws -> Draft { try Draft(path: path, writeKey: writeKey, check: {}) }

    /// A version of `user.json` that differs after each change by any process. Empty without a file.
    var version: [Int] {
        var status = stat()
        guard stat(path, &status) == 0 else { return [] }
        let time = status.modified
        return [Int(status.st_ino), Int(status.st_size), Int(time.tv_sec), Int(time.tv_nsec)]
    }

    /// Changes `user.json` under its lock. Call on the thread for credentials. `body` runs again if the process was
    /// suspended during the change and another process took over the lock.
    func change<Result>(
        replacesDamaged: Bool = false, _ body: (inout Draft) throws -> Result
    ) throws -> Result {
        try FileLock.withLock(at: lockPath) { lock in
            var draft = try Draft(
                path: path, writeKey: writeKey, replacesDamaged: replacesDamaged, check: lock.check)
            let result = try body(&draft)
            if file.content != .missing { draft.removeFormerUser() }
            try draft.write()
            return result
        }
    }

    /// Removes the users of all write keys.
    func removeAll() throws {
        try FileLock.withLock(at: lockPath) { lock in
            try lock.check()
            try file.remove()
            let names = try FileManager.default.contentsOfDirectory(atPath: directory.path)
            for name in names where name == "user.json" || name.hasPrefix(Self.prefix) {
                try FileManager.default.removeItem(at: directory.appendingPathComponent(name))
            }
        }
    }
}
