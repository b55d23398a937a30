internal import CountersignCore
internal import CountersignTransport
internal import Foundation

/// The fetched App Inbox of one customer, in memory and in a file. For another customer or project the file counts as
/// empty. Used on the storage thread only.
final class AppInboxCache: @unchecked Sendable {
    struct Owner: Equatable {
        let customerIDs: [String: String]
        let projectToken: String

        static func == (left: Owner, right: Owner) -> Bool {
            left.projectToken == right.projectToken && left.customerIDs.isSame(as: right.customerIDs)
        }
    }

    struct Fetch: Sendable {
        let number: Int
        /// The sync token to send; nil to fetch the whole inbox.
        var syncToken: String?
    }

    private struct Contents {
        let owner: Owner
        var messages: [String: AppInboxMessage] = [:]
        var syncToken: String?
        var fetch = 0
    }

    /// The maximum number of messages. `apply` drops the oldest, because servers never report deletions.
    static let maximumMessages = 10_000

    private let path: String
    private let log: CountersignLog?
    private var loaded: Contents?
    private var lastFetch = 0
    private var lastFetchBeforeClear = 0
    private var isWiped = false

    init(directory: URL, log: CountersignLog?) {
        path = directory.appendingPathComponent("inbox.json").path
        self.log = log
    }

    func begin(for owner: Owner) -> Fetch {
        lastFetch += 1
        return Fetch(number: lastFetch, syncToken: contents(of: owner).syncToken)
    }

    /// Returns all messages, newest first. A received message replaces an earlier one with the same ID. Ignores a
    /// response if a later fetch was applied already: the next fetch returns all messages since the stored sync token.
    /// Returns nil if the response lacks messages that `clear()` deleted during the fetch.
    func apply(
        _ messages: [AppInboxMessage], syncToken: String?, _ fetch: Fetch, for owner: Owner
    ) -> [AppInboxMessage]? {
        if fetch.syncToken != nil, fetch.number <= lastFetchBeforeClear { return nil }
        var contents = contents(of: owner)
        if fetch.number > contents.fetch {
            for message in messages { contents.messages[message.id] = message }
            for message in Self.sorted(contents).dropFirst(Self.maximumMessages) {
                contents.messages[message.id] = nil
            }
            contents.syncToken = syncToken ?? contents.syncToken
            contents.fetch = fetch.number
            save(contents)
        }
        return Self.sorted(contents)
    }

    func clear() {
        loaded = nil
        lastFetchBeforeClear = lastFetch
        try? FileManager.default.removeItem(atPath: path)
    }

    /// Clears the cache. The file is not written again, also not by a fetch that began earlier.
    func wipe() {
        isWiped = true
        clear()
    }

    func message(_ id: String, of owner: Owner) -> AppInboxMessage? { contents(of: owner).messages[id] }

    func messages(of owner: Owner) -> [AppInboxMessage] { Self.sorted(contents(of: owner)) }

    /// Call it after the server has marked the message as read. Ignores an unknown message.
    func markAsRead(_ id: String, of owner: Owner) {
        var contents = contents(of: owner)
        guard contents.messages[id] != nil else { return }
        contents.messages[id]?.isRead = true
        save(contents)
    }

    private static func sorted(_ contents: Contents) -> [AppInboxMessage] {
        contents.messages.values.sorted { ($0.createdAt, $1.id) > ($1.createdAt, $0.id) }
    }

    // MARK: The file

    private func contents(of owner: Owner) -> Contents {
        if let loaded { return loaded.owner == owner ? loaded : Contents(owner: owner) }
        guard let data = FileManager.default.contents(atPath: path),
            let root = JSONDocument.object(Array(data)), let token = root["project_token"]?.string,
            let ids = root["customer_ids"]?.object?.compactMapValues(\.string)
        else { return Contents(owner: owner) }
        var contents = Contents(owner: Owner(customerIDs: Dictionary(ids), projectToken: token))
        contents.syncToken = root["sync_token"]?.string
        for value in root["messages"]?.array ?? [] {
            guard let message = AppInboxMessage(cached: value, of: token) else { continue }
            contents.messages[message.id] = message
        }
        loaded = contents
        return contents.owner == owner ? contents : Contents(owner: owner)
    }

    private func save(_ contents: Contents) {
        loaded = contents
        if isWiped { return }
        let root: JSONValue = [
            "project_token": .string(contents.owner.projectToken),
            "customer_ids": .object(JSONObject(contents.owner.customerIDs.mapValues { .string($0) })),
            "sync_token": contents.syncToken.map { .string($0) } ?? .null,
            "messages": .array(contents.messages.values.map(\.json)),
        ]
        do {
            try DurableFile.write(Data(root.bytes), to: path)
        } catch {
            // The file has its earlier sync token, if any, so the next run fetches these messages again.
            log?(.warning, "App Inbox could not be stored", ["error": "\(error)"])
        }
    }
}
