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
            ["id": .string(id), "is_read": .bool(isRead)], customerIDs: ada.customerIDs, syncToken: "s")
    }

    @Test func aCachedInboxIsNotReturnedForAnotherCustomer() throws {
        let cache = AppInboxCache(directory: directory, log: nil)
        let (fetch, _) = cache.begin(for: ada)
        _ = cache.apply([try #require(message("a"))], syncToken: "s", fetch: fetch, for: ada)
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
        let first = cache.begin(for: ada).fetch
        let second = cache.begin(for: ada).fetch
        _ = cache.apply([try #require(message("a", isRead: true))], syncToken: "s2", fetch: second, for: ada)
        let all = cache.apply([try #require(message("a"))], syncToken: "s1", fetch: first, for: ada)
        #expect(all.map(\.isRead) == [true])
        #expect(cache.begin(for: ada).syncToken == "s2")
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
