internal import CountersignCore
internal import CountersignSQLite
internal import Foundation
internal import GatewayModel
internal import GatewayStorage

/// A connection that stores events. Belongs to one thread.
final class EventLogWriter {
    /// The class of advisory locks on writer numbers (column `lane`). A writer takes the first free number, and adds
    /// its counts to the rows of that number.
    private static let lockClass = 0x4C41
    /// The writer number of rows that count deletions.
    static let ofDeletions: Int32 = -1
    /// The statement timeout, short because devices wait for the response. On a network that drops packets, the
    /// connection is closed 5 s later.
    private static let statementMilliseconds = 8_000

    private let pool: PostgreSQLPool
    private var connection: PostgreSQLConnection?
    private var number: Int32 = 0

    init(_ pool: PostgreSQLPool) {
        self.pool = pool
    }

    /// Stores batches with at most ``EventHorizon/mostOfTransaction`` events in one transaction. Throws
    /// `PostgreSQLError`. In this case nothing was stored, unless the connection was lost during the commit.
    func store(_ batches: [EventBatch]) throws -> [AppendOutcome] {
        var attempts = 0
        defer { pool.noteWrite(attempts: attempts) }
        return try using { connection in
            try connection.retrying {
                attempts += 1
                let claims = ContentClaims(batches)
                guard !claims.isEmpty || batches.contains(where: { !$0.customers.isEmpty }) else {
                    return try insert(EventInsert.rows(of: batches), of: batches, connection)
                }
                return try connection.transaction {
                    let rows = EventInsert.rows(of: batches)
                    // Inserts the others first: a user's event may match an anonymous event of this transaction.
                    let (claiming, others) = claims.split(rows, batches)
                    var outcomes = try insert(others, of: batches, connection)
                    let left = try claims.claim(claiming, of: batches, &outcomes, connection)
                    let rest = try insert(left, of: batches, connection)
                    for index in outcomes.indices {
                        outcomes[index].accepted += rest[index].accepted
                        outcomes[index].duplicates += rest[index].duplicates
                    }
                    try CustomerWriter.store(batches, connection)
                    return outcomes
                }
            }
        }
    }

    private func insert(
        _ rows: [EventInsert.Row], of batches: [EventBatch], _ connection: PostgreSQLConnection
    ) throws -> [AppendOutcome] {
        var outcomes = [AppendOutcome](repeating: AppendOutcome(), count: batches.count)
        guard !rows.isEmpty else { return outcomes }
        for row in rows { outcomes[row.batch].accepted += 1 }
        var owners: [Int32: Int] = [:]
        let parameters = EventInsert.parameters(rows, of: batches, lane: number)
        try connection.each(EventInsert.sql(base: try EventHorizon.base(connection)), parameters) { row in
            if owners.isEmpty {
                owners = Dictionary(uniqueKeysWithValues: rows.map { ($0.ordinal, $0.batch) })
            }
            if let batch = owners[Int32(row.int(0))] {
                outcomes[batch].accepted -= 1
                outcomes[batch].duplicates += 1
            }
            return true
        }
        return outcomes
    }

    func note(_ uses: KeyUseTally) throws {
        try using { connection in
            let sorted = uses.sorted
            var parameters = Parameters()
            parameters.add(.integer(Int64(number)))
            parameters.add(texts: sorted.map(\.appID))
            parameters.add(texts: sorted.map(\.keyID))
            parameters.add(integers: sorted.map(\.verified))
            parameters.add(integers: sorted.map(\.lastMilliseconds))
            try connection.each(
                """
                INSERT INTO key_use AS own (app_id, key_id, lane, verified, last_ms)
                    SELECT app, key, $1::int, uses, last FROM unnest($2, $3, $4, $5) AS u (app, key, uses, last)
                    ON CONFLICT (app_id, key_id, lane) DO UPDATE
                    SET verified = own.verified + excluded.verified, last_ms = greatest(own.last_ms, excluded.last_ms)
                """, parameters
            ) { _ in true }
        }
    }

    func probe() throws {
        try using { connection in
            try connection.execute(
                """
                INSERT INTO probe VALUES (\(number), extract(epoch FROM now()) * 1000)
                ON CONFLICT (lane) DO UPDATE SET at_ms = excluded.at_ms
                """)
        }
    }

    private func using<Value>(_ body: (PostgreSQLConnection) throws -> Value) throws -> Value {
        let connection = try self.connection.flatMap { $0.isSound ? $0 : nil } ?? connect()
        do {
            return try pool.noting { try body(connection) }
        } catch {
            if (error as? PostgreSQLError)?.isConnectionLost == true || !connection.isSound {
                self.connection = nil
            }
            throw error
        }
    }

    private func connect() throws -> PostgreSQLConnection {
        let made = try pool.connect(statementMilliseconds: Self.statementMilliseconds)
        // Avoids planning each statement again. The best plan does not depend on the values.
        try made.execute("SET plan_cache_mode = force_generic_plan")
        number =
            try made.first(
                """
                SELECT number FROM generate_series(0, 9999) AS number
                WHERE pg_try_advisory_lock(\(Self.lockClass), number) LIMIT 1
                """
            ) { Int32($0.int(0)) } ?? 0
        connection = made
        return made
    }
}
