internal import CountersignCore
import Foundation
import Testing

@testable import CountersignCLI

@Suite(.timeLimit(.minutes(5)))
struct DemoCheckTests {
    private let rows = [
        DemoPlan.Row(number: 0, event: ReplayEvent(userID: "a", name: "E", properties: [:])),
        DemoPlan.Row(number: 1, event: ReplayEvent(userID: "b", name: "E", properties: [:])),
    ]

    @Test(arguments: [
        ("identify a -,track a 0,identify b -,track b 1", 2, 0, 0, 0, 0),
        ("identify a -,track a 0,identify b -", 1, 1, 0, 0, 0),
        ("identify a -,track a 0,identify b -,track b 1,track b 1", 1, 0, 1, 0, 0),
        ("identify a -,track a 0,identify b -,track b 1,track b 2", 2, 0, 0, 1, 0),
        ("identify a -,track a 0,identify b -,track a 1", 1, 1, 0, 1, 0),
        ("identify a -,track a 0,identify b -,track b 1,track b -", 2, 0, 0, 1, 0),
        ("identify a -,track a 0,identify b -,track b 1,track mallory 3", 2, 0, 0, 0, 1),
        ("identify a -,track a 0,identify b -,track b 1,identify mallory -", 2, 0, 0, 0, 1),
        ("track a 0,identify b -,track b 1", 2, 1, 0, 0, 0),
        ("identify a -,identify a -,track a 0,identify b -,track b 1", 2, 0, 1, 0, 0),
        ("", 0, 4, 0, 0, 0),
    ])
    func seesEachKindOfDifference(
        stored: String, exact: Int, missing: Int, repeated: Int, unknown: Int, forged: Int
    ) {
        let stored = stored.split(separator: ",").map { text in
            let parts = text.split(separator: " ").map(String.init)
            return DemoCheck.Stored(type: parts[0], userID: parts[1], number: Int(parts[2]))
        }
        let check = DemoCheck(stored: stored, rows: rows, identified: ["a": 1, "b": 1])
        let counts: [Int] = [check.exact, check.missing, check.repeated, check.unknown, check.forged]
        let expected: [Int] = [exact, missing, repeated, unknown, forged]
        #expect(counts == expected)
    }

    @Test func readsLinesOfTheSQLiteCommand() throws {
        let stored = try DemoCheck.stored(in: "identify\ta b\t\ntrack\ta b\t7\n")
        #expect(
            stored == [
                DemoCheck.Stored(type: "identify", userID: "a b", number: nil),
                DemoCheck.Stored(type: "track", userID: "a b", number: 7),
            ])
        #expect(throws: CommandError.self) { try DemoCheck.stored(in: "Error: no such table\n") }
    }

    @Test func aMissingDatabaseIsAFailure() {
        let error = #expect(throws: CommandError.self) {
            try DemoCheck.read(database: "/no/such/file.sqlite", appID: "demo")
        }
        #expect(error?.code == .failed)
    }
}
