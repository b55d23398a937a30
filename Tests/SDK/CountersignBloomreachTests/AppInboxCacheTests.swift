import CountersignTesting
import Foundation
import SDKTestSupport
import Testing

@testable import CountersignBloomreach

struct AppInboxCacheTests {
    private let folder = TemporaryFolder()
    private var directory: URL { folder.url }
    private let ada = AppInboxCache.Owner(customerIDs: ["registered": "ada"], projectToken: "p")

    private func message(_ id: String, isRead: Bool = false) -> AppInboxMessage? {
        AppInboxMessage(
            ["id": .string(id), "is_read": .bool(isRead), "create_time": .integer(Int64(id) ?? 0)],
            customerIDs: ada.customerIDs, syncToken: "s", projectToken: "p")
    }

    @Test func aCachedInboxIsNotReturnedForAnotherCustomer() throws {
        let cache = AppInboxCache(directory: directory, log: nil)
        _ = cache.apply([try #require(message("a"))], syncToken: "s", cache.begin(for: ada), for: ada)
        // Composed and decomposed: equal for `String`, but two customers.
        let composed = AppInboxCache.Owner(customerIDs: ["registered": "\u{E9}"], projectToken: "p")
        let decomposed = AppInboxCache.Owner(customerIDs: ["registered": "e\u{301}"], projectToken: "p")
        #expect(composed != decomposed)
        for other in [
            composed, AppInboxCache.Owner(customerIDs: ada.customerIDs, projectToken: "q"),
            AppInboxCache.Owner(customerIDs: [:], projectToken: "p"),
        ] {
            // In memory, and from the file.
            for cache in [cache, AppInboxCache(directory: directory, log: nil)] {
                #expect(cache.messages(of: other).isEmpty)
                #expect(cache.begin(for: other).syncToken == nil)
            }
        }
        #expect(cache.messages(of: ada).map(\.id) == ["a"])
    }

    @Test func aLateResponseToAnEarlierFetchIsIgnored() throws {
        let cache = AppInboxCache(directory: directory, log: nil)
        let first = cache.begin(for: ada)
        let second = cache.begin(for: ada)
        _ = cache.apply([try #require(message("a", isRead: true))], syncToken: "s2", second, for: ada)
        let all = cache.apply([try #require(message("a"))], syncToken: "s1", first, for: ada)
        #expect(all?.map(\.isRead) == [true])
        #expect(cache.begin(for: ada).syncToken == "s2")
        // The response has only messages since `s2`. With its sync token the cleared messages would stay hidden.
        let third = cache.begin(for: ada)
        cache.clear()
        #expect(cache.apply([try #require(message("b"))], syncToken: "s3", third, for: ada) == nil)
        #expect(cache.begin(for: ada).syncToken == nil)
    }

    @Test func theOldestMessagesOverTheLimitAreDropped() throws {
        let cache = AppInboxCache(directory: directory, log: nil)
        let messages = (0...AppInboxCache.maximumMessages).compactMap { message("\($0)") }
        let all = cache.apply(messages, syncToken: "s", cache.begin(for: ada), for: ada)
        #expect(all?.count == AppInboxCache.maximumMessages && all?.last?.id == "1")
    }

    @Test(arguments: [
        "", "{", "[]", #"{"messages":7}"#,
        #"{"project_token":"p","customer_ids":{"registered":"ada"},"messages":[7,{}]}"#,
    ])
    func damagedFileIsAnEmptyInbox(text: String) throws {
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        try Data(text.utf8).write(to: directory.appendingPathComponent("inbox.json"))
        let cache = AppInboxCache(directory: directory, log: nil)
        #expect(cache.messages(of: ada).isEmpty)
        #expect(cache.begin(for: ada).syncToken == nil)
    }
}
