import CountersignSQLite
import GatewayModel
import GatewayStorage
import Testing

/// A connection caches the statements that it prepares, by their text.
struct ConsumerRowsTests {
    private final class Recorder: SQLConnection {
        var statements: Set<String> = []
        var changes = 1
        let forUpdate = ""

        func each(_ sql: String, _ values: [SQLValue], _ body: (any SQLRow) throws -> Bool) {
            statements.insert(sql)
        }

        func execute(_ sql: String) { statements.insert(sql) }
        func sealed(_ secret: [UInt8], _ column: SecretColumn, _ key: String...) -> [UInt8] { secret }
        func opened(_ stored: [UInt8], _ column: SecretColumn, _ key: String...) -> [UInt8] { stored }
        func appTables() -> [AppTable] { [] }
    }

    @Test func storingPositionsPreparesAFixedNumberOfStatements() throws {
        let recorder = Recorder()
        let rows = ConsumerRows(recorder)
        let id = EventConsumerID(appID: "shop", name: "one")
        var counts: Set<Int> = []
        for number in 1...5 as ClosedRange<Int64> {
            for isOpen in [false, true] {
                var progress = DeliveryProgress(committed: number)
                progress.gap = EventGap(isOpen: isOpen)
                try rows.keep(progress, of: id)
                try rows.noteMoved(id, deliveredMilliseconds: number)
                _ = try rows.move(id, 0, from: number, to: number + 1, gap: progress.gap, if: "true")
            }
            _ = try rows.insert(
                id, EventConsumerSettings(), at: number, generation: "generation", milliseconds: number)
            counts.insert(recorder.statements.count)
        }
        #expect(counts == [7])
    }

    /// The positions may belong to a consumer that another transaction creates at the same time.
    @Test func positionsOfAMissingConsumerAreNotDeleted() throws {
        let recorder = Recorder()
        recorder.changes = 0
        let isDeleted = try ConsumerRows(recorder).delete(EventConsumerID(appID: "shop", name: "one"))
        #expect(!isDeleted)
        #expect(recorder.statements.count == 1)
    }
}
