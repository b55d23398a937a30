import CountersignSQLite
import CountersignTesting
import Foundation
import TestSupport
import Testing

@testable import CountersignDelivery

/// The cost of a claim in the queue file, counted in operations of SQLite's virtual machine.
struct ClaimCostTests {
    private let folder = TemporaryFolder()
    private let clock = ManualClock()

    init() throws {
        try FileManager.default.createDirectory(at: folder.url, withIntermediateDirectories: true)
    }

    /// A queue with two events of each user.
    private func queue(users: Int) throws -> EventQueue {
        let queue = try EventQueue(
            path: folder.url.appendingPathComponent("\(users).sqlite").path,
            limits: QueueLimits(maximumEvents: 1_000_000), clock: clock)
        try queue.connection.transaction {
            try queue.connection.run(
                """
                WITH RECURSIVE number (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM number WHERE n + 1 < 2 * ?1)
                INSERT INTO event (message_id, user_id, session_id, queue_time_s, body)
                SELECT 'm' || n, 'user ' || (n % ?1), 's', 0, CAST('{"n":' || n || '}' AS BLOB) FROM number
                """, .integer(Int64(users)))
            _ = try queue.recount()
        }
        return queue
    }

    /// The highest number of operations of 300 claims while most users are blocked. Meanwhile users get tokens, which
    /// are rejected again.
    private func mostSteps(users: Int, newestFirst: Bool) throws -> Int {
        let queue = try queue(users: users)
        var backoffs = UserBackoffs()
        var most = 0
        var claimed: [String] = []
        func claim() throws -> UserKey? {
            backoffs.lapse(at: 0)
            var request = ClaimRequest(maximumEvents: 100, maximumBytes: 400_000)
            request.blockedUsers = backoffs.blocked
            request.newestFirst = newestFirst
            let before = queue.connection.virtualMachineSteps
            let events = try queue.claim(request)
            most = max(most, queue.connection.virtualMachineSteps - before)
            claimed += events.map(\.messageID)
            #expect(events.count <= 2)
            let user = events.first.map { UserKey($0.userID) }
            if claimed.count % 3 == 0, let user {
                try queue.apply(DeliveryOutcome(delivered: events))
                backoffs.accepted(user)
            }
            return user
        }
        // Most users are blocked already. The first claim reads past them, once.
        for number in 0..<users - 400 {
            backoffs.change(UserKey("user \(newestFirst ? users - 1 - number : number)")) {
                $0.hold(until: nil, .init("no_token", ""))
            }
        }
        var blocked: [UserKey] = []
        if let user = try claim() { blocked.append(user) }
        most = 0
        for round in 0..<300 {
            let user = try #require(try claim())
            backoffs.change(user) { $0.hold(until: nil, .init("no_token", "")) }
            blocked.append(user)
            if round % 10 == 9 {
                let user = blocked[round / 2]
                _ = backoffs.tokenChanged(for: user, generation: round, now: Double(round) * 100)
            }
        }
        return most
    }

    @Test(arguments: [false, true])
    func theCostOfAClaimDoesNotGrowWithWaitingUsers(newestFirst: Bool) throws {
        let few = try mostSteps(users: 500, newestFirst: newestFirst)
        for users in [4_000, 20_000, 100_000] {
            let many = try mostSteps(users: users, newestFirst: newestFirst)
            #expect(many <= few + few / 10, "\(users) users: \(many) operations, 500 users: \(few)")
        }
    }

    /// At the end of a round all users with events may be blocked.
    @Test func theCostOfAnEmptyClaimDoesNotGrowWithWaitingUsers() throws {
        var steps: [Int] = []
        for users in [500, 4_000, 20_000] {
            let queue = try queue(users: users)
            var backoffs = UserBackoffs()
            for number in 0..<users {
                backoffs.change(UserKey("user \(number)")) { $0.hold(until: nil, .init("no_token", "")) }
            }
            var request = ClaimRequest(maximumEvents: 100, maximumBytes: 400_000)
            request.blockedUsers = backoffs.blocked
            #expect(try queue.claim(request).isEmpty)
            let before = queue.connection.virtualMachineSteps
            #expect(try queue.claim(request).isEmpty)
            steps.append(queue.connection.virtualMachineSteps - before)
        }
        #expect(steps.max() == steps.min())
    }

    // MARK: The order

    /// The events that a claim must take, found by a search of all events.
    private func expected(_ queue: EventQueue, _ request: ClaimRequest) throws -> [Int64] {
        let rows = try queue.connection.all(
            "SELECT seq, user_id FROM event ORDER BY seq \(request.newestFirst ? "DESC" : "")"
        ) { row throws(SQLiteError) in (row.int64(0), UserKey(column: row.text(1))) }.filter {
            !request.excluded.contains($0.0)
        }
        guard let user = rows.first(where: { !request.blockedUsers.contains($0.1) })?.1 else { return [] }
        return rows.filter { $0.1 == user }.prefix(request.maximumEvents).map(\.0)
    }

    /// Users are blocked and unblocked, events come, are delivered, and are deleted by another process.
    @Test(arguments: [false, true], 0..<20)
    func claimsTakeTheNextEventOfAUserThatIsNotBlocked(newestFirst: Bool, seed: Int) throws {
        var random = SeededGenerator(seed: UInt64(seed))
        let queue = try queue(users: 5)
        let other = try EventQueue(path: queue.connection.path, limits: QueueLimits(), clock: clock)
        let users = (0..<9).map { UserKey($0 == 0 ? nil : "user \($0)") }
        var blocked = BlockedUsers()
        for step in 0..<200 {
            switch Int.random(in: 0..<8, using: &random) {
            case 0, 1: blocked.insert(users[Int.random(in: 0..<9, using: &random)])
            case 2, 3: blocked.remove(users[Int.random(in: 0..<9, using: &random)])
            case 4:
                let user = users[Int.random(in: 0..<9, using: &random)]
                try (step.isMultiple(of: 2) ? queue : other).append(
                    [
                        RenderedEvent(
                            messageID: "\(step)", userID: user.userID, sessionID: "s", body: Array("{}".utf8))
                    ])
            case 5:
                try other.connection.run(
                    "DELETE FROM event WHERE seq = (SELECT seq FROM event ORDER BY random() LIMIT 1)")
            case 6 where step % 40 == 0: blocked = BlockedUsers(blocked.users)
            default: break
            }
            var request = ClaimRequest(maximumEvents: 2, maximumBytes: .max)
            request.blockedUsers = blocked
            request.newestFirst = newestFirst
            if Bool.random(using: &random), let first = try expected(queue, request).first {
                request.excluded = [first]
            }
            let events = try queue.claim(request)
            #expect(try events.map(\.sequence) == expected(queue, request), "step \(step)")
            if Int.random(in: 0..<3, using: &random) == 0 {
                try queue.apply(DeliveryOutcome(delivered: events))
            }
        }
    }
}
