internal import CountersignCore
internal import Foundation

/// Stores the current user and the sign-outs (see `SignOut`), in two files in the queue's directory.
///
/// The first file holds the current user, one file for each write key. `Recorder` writes the file before the
/// events of that user. It is read on the caller's thread before the first event is recorded. The second
/// file, `user.json`, holds the sign-outs by write key. Processes that share the queue share both
/// files. The user set last by any process is the initial user of the next start.
struct StoredUser: Sendable {
    /// The content of the first file.
    struct Identity: Codable, Sendable {
        struct UnwrittenSignOut: Codable, Sendable {
            let user: String
            let isSigned: Bool
        }

        /// The current user's ID, or nil without a user.
        var user: String?
        /// Whether the app has set a token for this user. If so, events wait while no token is stored.
        var isSigned = false
        /// The sign-outs not yet written to `user.json`.
        var signOuts: [UnwrittenSignOut] = []

        enum CodingKeys: String, CodingKey {
            case user
            case isSigned
            case signOuts = "logOuts"
        }

        /// The encoded identity, or nil if there is neither a user nor a sign-out.
        var bytes: [UInt8]? {
            guard user != nil || !signOuts.isEmpty else { return nil }
            return (try? JSONEncoder().encode(self)).map { Array($0) }
        }

        /// The users whose events wait while the token store has no token for the user.
        var signedUsers: Set<UserKey> {
            Set(signOuts.filter(\.isSigned).map { UserKey($0.user) } + (isSigned ? [UserKey(user)] : []))
        }

        /// Sets the user. A user with a token is no longer signing out.
        mutating func set(_ userID: String, isSigned: Bool) {
            user = userID
            self.isSigned = isSigned
            if isSigned { remove(signOutOf: userID) }
        }

        mutating func signOut() {
            if let user { signOuts.append(UnwrittenSignOut(user: user, isSigned: isSigned)) }
            user = nil
            isSigned = false
        }

        mutating func remove(signOutOf userID: String) {
            signOuts.removeAll { UserKey($0.user) == UserKey(userID) }
        }
    }

    private struct Content: Codable {
        /// The current users, in files of earlier versions.
        var users: [String: String]?
        /// By write key. Nil in files of earlier versions.
        var signOuts: [String: [SignOut]]?

        enum CodingKeys: String, CodingKey {
            case users
            case signOuts = "departures"
        }
    }

    /// The entries of one write key in `user.json`, under the lock.
    struct Draft {
        private let path: String
        private let writeKey: String
        private let check: () throws -> Void
        private var content: Content
        private var isChanged = false

        fileprivate init(path: String, writeKey: String, check: @escaping () throws -> Void) {
            self.path = path
            self.writeKey = writeKey
            self.check = check
            content =
                FileManager.default.contents(atPath: path).flatMap {
                    try? JSONDecoder().decode(Content.self, from: $0)
                } ?? Content()
        }

        /// Whether an earlier version has stored the current user in this file.
        var hasFormerUser: Bool { content.users?[writeKey] != nil }

        fileprivate var formerUser: String? {
            content.users?[writeKey].flatMap { $0.isEmpty ? nil : $0 }
        }

        fileprivate mutating func removeFormerUser() {
            guard content.users?[writeKey] != nil else { return }
            content.users?[writeKey] = nil
            isChanged = true
        }

        /// All sign-outs.
        var signOuts: [SignOut] { content.signOuts?[writeKey] ?? [] }

        /// The user's sign-out, or nil if the user is signed in or was never set.
        func signOut(of userID: String) -> SignOut? {
            signOuts.first { $0.user.utf8.elementsEqual(userID.utf8) }
        }

        mutating func set(_ signOut: SignOut?, of userID: String) {
            guard signOut != self.signOut(of: userID) else { return }
            var signOuts = signOuts.filter { !$0.user.utf8.elementsEqual(userID.utf8) }
            if let signOut { signOuts.append(signOut) }
            content.signOuts = content.signOuts ?? [:]
            content.signOuts?[writeKey] = signOuts.isEmpty ? nil : signOuts
            isChanged = true
        }

        /// The users whose sign-out has not ended.
        var signingOut: [String] { signOuts.filter { $0.state == .signingOut }.map(\.user) }

        /// The signed-out users with waiting events.
        var signedOut: [String] { signOuts.filter { $0.state == .signedOut }.map(\.user) }

        func isSignedOut(_ userID: String) -> Bool { signOut(of: userID)?.state == .signedOut }

        mutating func beginSignOut(of userID: String, in client: String) {
            set(SignOut.begin(userID, in: client, from: signOut(of: userID)), of: userID)
        }

        /// Marks the user as signed out, and makes that durable.
        mutating func writeSignedOut(_ userID: String) throws {
            set(SignOut(user: userID, state: .signedOut), of: userID)
            try write()
        }

        /// Throws if another process has taken over the lock. Call before changing anything other than this
        /// file.
        func checkLock() throws { try check() }

        /// Makes the changes so far durable.
        mutating func write() throws {
            guard isChanged else { return }
            try DurableFile.writeOrOverwrite(try JSONEncoder().encode(content), to: path, check: check)
            #if os(iOS)
                // Readable before the first unlock, so that events recorded then have a user. The queue has
                // user IDs too.
                try FileManager.default.setAttributes(
                    [.protectionKey: FileProtectionType.none], ofItemAtPath: path)
            #endif
            isChanged = false
        }
    }

    /// The prefix of the file names of current users.
    static let prefix = "user-"

    /// The file with the current user. `Recorder` writes it.
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

    /// Reads the initial user. A damaged or unreadable file counts as no user. `isFormer` is true if an
    /// earlier version stored the user.
    func loadIdentity() -> (identity: Identity, isFormer: Bool) {
        switch file.content {
        case .missing:
            let user = load().formerUser
            return (Identity(user: user), user != nil)
        case .value(let bytes):
            return ((try? JSONDecoder().decode(Identity.self, from: Data(bytes))) ?? Identity(), false)
        case .inaccessible, .unreadable: return (Identity(), false)
        }
    }

    /// Reads the sign-outs. A damaged file counts as empty.
    func load() -> Draft { Draft(path: path, writeKey: writeKey, check: {}) }

    /// The version of `user.json`, different after each change by any process.
    var version: [Int] {
        var status = stat()
        guard stat(path, &status) == 0 else { return [] }
        #if canImport(Darwin)
            let time = status.st_mtimespec
        #else
            let time = status.st_mtim
        #endif
        return [Int(status.st_ino), Int(status.st_size), Int(time.tv_sec), Int(time.tv_nsec)]
    }

    /// Changes `user.json` under the lock. Call on the thread for credentials. `body` may run again if the
    /// process was suspended meanwhile.
    func change<Result>(_ body: (inout Draft) throws -> Result) throws -> Result {
        try FileLock.withLock(at: lockPath) { lock in
            var draft = Draft(path: path, writeKey: writeKey, check: lock.check)
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
            let names = try? FileManager.default.contentsOfDirectory(atPath: directory.path)
            for name in names ?? [] where name == "user.json" || name.hasPrefix(Self.prefix) {
                try FileManager.default.removeItem(at: directory.appendingPathComponent(name))
            }
        }
    }
}
