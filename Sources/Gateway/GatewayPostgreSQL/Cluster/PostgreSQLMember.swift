internal import CountersignCore
internal import CountersignSQLite
internal import Foundation
internal import GatewayModel
internal import GatewayStorage

/// A gateway's row in the table `gateway`, updated by a thread each second and after notifications.
///
/// The thread updates the row's time, reads the changes of other gateways, and stores the generation it has read. A
/// gateway that makes a change waits until all live rows have the change's generation (`PostgreSQLCluster`).
final class PostgreSQLMember: ClusterMember {
    private struct State {
        /// The uptime until which the last read of changes is valid.
        var goodUntil: Int64 = .min
        var gateways = 1
        var clockOffset: Int64 = 0
        var readerLag: Int64 = 0
        var duties: Set<ClusterDuty> = []
        var url: String?
        var adminURL: String?
        var isStopping = false
        var isCutOff = false
        var isClockOff = false
    }

    private static let pauseMilliseconds: Int64 = 1_000
    /// How long rows of terminated gateways are shown.
    private static let shownMilliseconds: Int64 = 3_600_000
    private static let firstDutyLock: Int64 = 100

    private let identity: GatewayIdentity
    private let settings: PostgreSQLSettings
    private let takesGivenTime: Bool
    private let now: @Sendable () -> Int64
    private let state = Lock(State())
    private let wakeSignal = WakeSignal()
    private let ended = CountingSemaphore(value: 0)

    init(
        _ identity: GatewayIdentity, _ settings: PostgreSQLSettings, takesGivenTime: Bool = false,
        now: @escaping @Sendable () -> Int64
    ) {
        self.takesGivenTime = takesGivenTime
        self.identity = identity
        self.settings = settings
        self.now = now
    }

    var isCurrent: Bool { Uptime.milliseconds < state.withLock { $0.goodUntil } }
    var gateways: Int { state.withLock { $0.gateways } }

    var lastBeat: ClusterBeat? {
        let time = Uptime.milliseconds
        return state.withLock { state in
            guard state.goodUntil > .min else { return nil }
            return ClusterBeat(
                ageMilliseconds: time - (state.goodUntil - ClusterRules.freshMilliseconds),
                clockOffsetMilliseconds: state.clockOffset, readerLagMilliseconds: state.readerLag)
        }
    }

    func has(_ duty: ClusterDuty) -> Bool {
        let time = Uptime.milliseconds
        return state.withLock { time < $0.goodUntil && $0.duties.contains(duty) }
    }

    func announce(url: String, adminURL: String) {
        state.withLock { state in
            state.url = url
            state.adminURL = adminURL
        }
        wakeSignal.signal()
    }

    func start(_ work: ClusterMemberWork) throws(GatewayError) {
        var beat = Heartbeat()
        do {
            try show(&beat, work)
        } catch {
            throw GatewayError(.storage, "cannot join the gateways of the database: \(error)")
        }
        // From here on, only the thread uses the heartbeat.
        let first = Lock<Heartbeat?>(beat)
        let thread = Thread { [self] in
            var beat = first.withLock { $0.take() } ?? Heartbeat()
            run(&beat, work)
            ended.signal()
        }
        thread.name = "cluster"
        thread.start()
    }

    func stop() {
        let wasStarted = state.withLock { state in
            defer { state.isStopping = true }
            return state.goodUntil > .min && !state.isStopping
        }
        guard wasStarted else { return }
        wakeSignal.signal()
        // The thread may be waiting for a server that does not respond, so the wait is limited.
        _ = ended.wait(until: .now() + 3)
    }

    // MARK: On the thread

    // `@unchecked Sendable`: after `start`, only the thread uses a heartbeat.
    private struct Heartbeat: @unchecked Sendable {
        var connection: PostgreSQLConnection?
        var reported: Int64 = -1
        var readers = ReaderLag()
    }

    private func run(_ beat: inout Heartbeat, _ work: ClusterMemberWork) {
        while true {
            wait(beat.connection)
            if state.withLock({ $0.isStopping }) { return leave(beat.connection) }
            do {
                try show(&beat, work)
                noteBack(work)
            } catch {
                // The server releases the advisory locks of the duties once it detects that the connection is lost.
                if let error = error as? PostgreSQLError, error.isConnectionLost { beat.connection = nil }
                if beat.connection?.isSound != true {
                    beat.connection = nil
                    state.withLock { $0.duties = [] }
                }
                noteFailure("\(error)", work)
            }
        }
    }

    /// Performs a heartbeat: updates the row, reads changes of other gateways and records their generation.
    private func show(_ beat: inout Heartbeat, _ work: ClusterMemberWork) throws {
        let start = Uptime.milliseconds
        let connection = try beat.connection ?? connect()
        beat.connection = connection
        let (generation, gateways) = try note(connection, &beat.readers, work)
        try work.refresh()
        if generation != beat.reported {
            try connection.run(
                "UPDATE gateway SET generation = ?2 WHERE id = ?1", .text(identity.id), .integer(generation))
            beat.reported = generation
        }
        let duties = try takeDuties(connection, work)
        state.withLock { state in
            state.goodUntil = start + ClusterRules.freshMilliseconds
            state.gateways = max(1, gateways)
            state.duties = duties
        }
    }

    private func connect() throws -> PostgreSQLConnection {
        let connection = try PostgreSQLConnection(settings)
        for channel in ClusterTables.channels { try connection.execute("LISTEN \(channel)") }
        return connection
    }

    /// Updates the row. Returns the generation before changes are read, and the number of live gateways.
    private func note(
        _ connection: PostgreSQLConnection, _ readers: inout ReaderLag, _ work: ClusterMemberWork
    ) throws -> (generation: Int64, gateways: Int) {
        let sent = Uptime.milliseconds
        let row = try connection.first(
            """
            SELECT \(ClusterTables.now), pg_snapshot_xmin(snapshot)::text::bigint,
                pg_snapshot_xmax(snapshot)::text::bigint FROM pg_current_snapshot() AS snapshot
            """
        ) { ($0.int64(0), $0.int64(1), $0.int64(2)) }
        guard let (time, oldest, next) = row else { throw PostgreSQLError.lost("no time was answered") }
        let received = Uptime.milliseconds
        let offset = takesGivenTime ? 0 : now() - (received - sent) / 2 - time
        let lag = readers.note(oldest: oldest, next: next, at: received)
        noteClock(offset, work)
        state.withLock { state in
            state.clockOffset = offset
            state.readerLag = lag
        }
        let (url, adminURL, duties) = state.withLock { ($0.url, $0.adminURL, $0.duties) }
        let traffic = work.traffic()
        try connection.run(
            """
            INSERT INTO gateway (
                id, name, version, url, admin_url, started_ms, seen_ms, clock_offset_ms, reader_lag_ms, duties,
                accepted, rejected, events, opens_seals)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, \(ClusterTables.now), ?7, ?8, ?9, ?10, ?11, ?12, 1)
            ON CONFLICT (id) DO UPDATE SET url = excluded.url, admin_url = excluded.admin_url,
                seen_ms = excluded.seen_ms, clock_offset_ms = excluded.clock_offset_ms,
                reader_lag_ms = excluded.reader_lag_ms, duties = excluded.duties,
                accepted = excluded.accepted, rejected = excluded.rejected, events = excluded.events
            """, .text(identity.id), .text(identity.name), .text(identity.version), .optionalText(url),
            .optionalText(adminURL), .integer(identity.startedMilliseconds), .integer(offset), .integer(lag),
            .text(duties.map { String($0.rawValue) }.sorted().joined(separator: ",")),
            .integer(Int64(traffic.accepted)), .integer(Int64(traffic.rejected)),
            .integer(Int64(traffic.events)))
        let counted = try connection.first(
            """
            SELECT \(ClusterTables.generation),
                (SELECT count(*) FROM gateway WHERE seen_ms > \(ClusterTables.now) - ?1)
            """, .integer(ClusterRules.deadMilliseconds)
        ) { ($0.int64(0), $0.int(1)) }
        return counted ?? (0, 1)
    }

    /// Takes free duties as advisory locks, which the connection holds until it is closed.
    private func takeDuties(
        _ connection: PostgreSQLConnection, _ work: ClusterMemberWork
    ) throws -> Set<ClusterDuty> {
        var duties = state.withLock { $0.duties }
        for duty in work.duties where !duties.contains(duty) {
            let lock = Self.firstDutyLock + duty.rawValue
            let isTaken = try connection.first(
                "SELECT pg_try_advisory_lock(\(PostgreSQLSchema.lockClass), \(lock))"
            ) { $0.int(0) != 0 }
            if isTaken == true { duties.insert(duty) }
        }
        if duties.contains(.deletedApps) {
            try connection.run(
                "DELETE FROM gateway WHERE seen_ms < \(ClusterTables.now) - ?1",
                .integer(Self.shownMilliseconds))
            try ClusterNotes.sweep(connection)
            try ClusterMessages.sweep(connection)
        }
        return duties
    }

    private func leave(_ connection: PostgreSQLConnection?) {
        state.withLock { $0.duties = [] }
        // A row that cannot be deleted expires soon.
        try? connection?.run("DELETE FROM gateway WHERE id = ?1", .text(identity.id))
    }

    private func wait(_ connection: PostgreSQLConnection?) {
        if let connection, !connection.notifications().isEmpty { return }
        wakeSignal.wait(besides: connection?.socket, milliseconds: Int32(Self.pauseMilliseconds))
        connection?.takeNotifications()
    }

    // MARK: Reports

    private func noteFailure(_ detail: String, _ work: ClusterMemberWork) {
        let isCutOff = !isCurrent
        let isNew = state.withLock { state in
            defer { state.isCutOff = state.isCutOff || isCutOff }
            return isCutOff && !state.isCutOff
        }
        if isNew { work.report(.cutOff(detail)) }
    }

    private func noteBack(_ work: ClusterMemberWork) {
        let wasCutOff = state.withLock { state in
            defer { state.isCutOff = false }
            return state.isCutOff
        }
        if wasCutOff { work.report(.back) }
    }

    private func noteClock(_ offset: Int64, _ work: ClusterMemberWork) {
        let isOff = abs(offset) > ClusterRules.clockMilliseconds
        let isNew = state.withLock { state in
            defer { state.isClockOff = isOff }
            return isOff && !state.isClockOff
        }
        if isNew { work.report(.clockDiffers(offset)) }
    }
}
