public import Foundation

/// Tokens in one file of mode 0600 in a directory of mode 0700.
///
/// Each change replaces the file durably, but on a full disk tokens are removed by overwriting it in place. Several
/// processes may share the file. Don't put it into the container of an app group: iOS terminates a suspended process
/// that holds a lock there.
public struct FileTokenStore: TokenStore {
    private struct Entry: Codable {
        let user: String
        let token: String
    }

    private let directory: URL

    /// Makes a store.
    ///
    /// - Parameter directory: Created if it is missing. Nothing else should be in it.
    public init(directory: URL) {
        self.directory = directory
    }

    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public func token(for userID: String) throws -> String? {
        try load()?.first { $0.user.utf8.elementsEqual(userID.utf8) }?.token
    }

    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public func store(_ token: String, for userID: String) throws {
        try alone { lock in
            let entries =
                (try load() ?? []).filter { !$0.user.utf8.elementsEqual(userID.utf8) }
                + [Entry(user: userID, token: token)]
            try DurableFile.write(try JSONEncoder().encode(entries), to: path, check: lock.check)
        }
    }

    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public func removeToken(for userID: String) throws {
        try alone { lock in
            let entries = try load()
            let rest = (entries ?? []).filter { !$0.user.utf8.elementsEqual(userID.utf8) }
            if rest.count != entries?.count { try remove(allBut: rest, lock) }
        }
    }

    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public func removeAll() throws {
        try alone { lock in try remove(allBut: [], lock) }
    }

    private var path: String { directory.appendingPathComponent("tokens.json").path }

    /// Nil for a damaged file, which may contain tokens. Users then need new tokens, and no events are lost.
    private func load() throws -> [Entry]? {
        let data: Data
        do {
            data = try Data(contentsOf: URL(fileURLWithPath: path))
        } catch let error as CocoaError where error.code == .fileReadNoSuchFile {
            return []
        }
        return try? JSONDecoder().decode([Entry].self, from: data)
    }

    /// Removes all other tokens, also on a full disk.
    private func remove(allBut entries: [Entry], _ lock: FileLock.Held) throws {
        try DurableFile.writeOrOverwrite(try JSONEncoder().encode(entries), to: path, check: lock.check)
    }

    private func alone(_ body: (FileLock.Held) throws -> Void) throws {
        try FileLock.withLock(at: directory.appendingPathComponent(".tokens.lock").path, body)
    }
}
