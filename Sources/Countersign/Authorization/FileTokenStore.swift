public import Foundation

#if canImport(Darwin)
    internal import Darwin
#elseif canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#endif

/// Tokens in one file of mode 0600 in a directory of mode 0700.
///
/// The file is always whole: a new one is written beside it, made durable and put in its place.
public struct FileTokenStore: TokenStore {
    private struct Entry: Codable {
        let user: String
        let token: String
    }

    private let directory: URL

    /// Makes a store.
    ///
    /// - Parameter directory: Made if it is missing. Nothing else should be in it.
    public init(directory: URL) {
        self.directory = directory
    }

    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public func token(for userID: String) throws -> String? {
        try load().first { $0.user.utf8.elementsEqual(userID.utf8) }?.token
    }

    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public func store(_ token: String, for userID: String) throws {
        try save(
            load().filter { !$0.user.utf8.elementsEqual(userID.utf8) } + [Entry(user: userID, token: token)])
    }

    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public func removeToken(for userID: String) throws {
        let entries = try load()
        let rest = entries.filter { !$0.user.utf8.elementsEqual(userID.utf8) }
        if rest.count < entries.count { try save(rest) }
    }

    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public func removeAll() throws {
        try save([])
    }

    private var path: String { directory.appendingPathComponent("tokens.json").path }

    private func load() throws -> [Entry] {
        guard let data = FileManager.default.contents(atPath: path) else { return [] }
        // A file that cannot be read as tokens holds none: users sign in again, events stay.
        return (try? JSONDecoder().decode([Entry].self, from: data)) ?? []
    }

    private func save(_ entries: [Entry]) throws {
        try FileManager.default.createDirectory(
            at: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        chmod(directory.path, 0o700)
        let data = try JSONEncoder().encode(entries)
        // The name is new at each call, so that two processes never write into one file.
        let temporary = directory.appendingPathComponent(".tokens-\(UUID().uuidString)").path
        do {
            let file = try check(open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600))
            defer { close(file) }
            try data.withUnsafeBytes { buffer in
                var rest = buffer
                while !rest.isEmpty {
                    let count = try check(write(file, rest.baseAddress, rest.count))
                    rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count))
                }
            }
            try check(fsync(file))
            try check(rename(temporary, path))
        } catch {
            unlink(temporary)
            throw error
        }
        let folder = try check(open(directory.path, O_RDONLY | O_CLOEXEC))
        defer { close(folder) }
        try check(fsync(folder))
    }

    @discardableResult
    private func check<Number: SignedInteger>(_ result: Number) throws -> Number {
        guard result >= 0 else {
            throw CocoaError(.fileWriteUnknown, userInfo: [NSFilePathErrorKey: path, "errno": errno])
        }
        return result
    }
}
