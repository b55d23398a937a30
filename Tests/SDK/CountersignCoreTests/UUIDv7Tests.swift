import Foundation
import Testing

@testable import CountersignCore

struct UUIDv7Tests {
    @Test func idsHaveTheFormOfVersionSeven() throws {
        let id = UUIDv7.make(at: Date(timeIntervalSince1970: 4_200_000_000))
        #expect(UUID(uuidString: id) != nil)
        #expect(id == id.lowercased())
        let characters = Array(id)
        #expect(characters[14] == "7")
        #expect("89ab".contains(characters[19]))
        // 4,200,000,000,000 ms in hexadecimal. Later than in all other tests, because ids never go backwards.
        #expect(id.hasPrefix("03d1e382-1000-7"))
    }

    @Test func idsSortAsTheyWereMadeAlsoWhenTheClockIsSetBack() {
        let now = Date(timeIntervalSince1970: 4_100_000_000)
        var ids = (0..<20_000).map { _ in UUIDv7.make(at: now) }
        ids += (0..<100).map { UUIDv7.make(at: now.addingTimeInterval(-Double($0))) }
        #expect(ids == ids.sorted())
        #expect(Set(ids).count == ids.count)
    }

    @Test func idsOfManyThreadsAreDifferent() {
        let all = Lock<Set<String>>([])
        DispatchQueue.concurrentPerform(iterations: 8) { _ in
            let ids = (0..<2_000).map { _ in UUIDv7.make() }
            all.withLock { $0.formUnion(ids) }
        }
        #expect(all.withLock { $0.count } == 16_000)
    }
}
