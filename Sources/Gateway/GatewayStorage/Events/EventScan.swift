internal import CountersignCore
internal import CountersignSQLite

/// Scans the events of a subject from a start in one direction, up to a maximum number.
struct EventScan {
    private static let sequencesPerStep = 256

    private let subject: EventSubject
    private let appID: String
    let isAscending: Bool
    private let maximumScanned: Int
    /// Ranges of the log to skip.
    private let leftOut: [ClosedRange<Int64>]
    private let end: Int64
    /// The last sequence number examined, from which to continue.
    private(set) var scannedThrough: Int64
    private(set) var scanned = 0

    /// `head` is the last sequence number of an ascending scan.
    init(
        _ subject: EventSubject, of appID: String, _ side: EventIndexReader.Side, through head: Int64 = .max,
        maximumScanned: Int = EventPage.maximumScanned, leavingOut leftOut: [ClosedRange<Int64>] = []
    ) {
        self.maximumScanned = maximumScanned
        self.leftOut = leftOut
        self.subject = subject
        self.appID = appID
        switch side {
        case .after(let sequence): (isAscending, scannedThrough, end) = (true, sequence, head)
        case .before(let sequence): (isAscending, scannedThrough, end) = (false, sequence, .min)
        }
    }

    func select(_ columns: String, _ conditions: EventConditions) -> String {
        """
        SELECT \(columns) FROM event WHERE seq BETWEEN ?1 AND ?2 AND \(conditions.text)
        ORDER BY seq\(isAscending ? "" : " DESC")
        """
    }

    /// Passes rows to `take` until `take` returns false. Returns false when more events may follow ``scannedThrough``.
    mutating func go(
        _ index: EventIndexReader, _ statement: SQLiteStatement, take: (SQLiteStatement) throws -> Bool
    ) throws -> Bool {
        defer { statement.reset() }
        var goesOn = true
        pages: while true {
            let sequences = try index.sequences(
                of: subject, in: appID, isAscending ? .after(scannedThrough) : .before(scannedThrough),
                limit: Self.sequencesPerStep)
            var rest = sequences.prefix { !isAscending || $0 <= end }
            while let first = rest.first {
                guard goesOn, scanned < maximumScanned else { return false }
                if let passed = leftOut.first(where: { $0.contains(first) }) {
                    scannedThrough = isAscending ? passed.upperBound : passed.lowerBound
                    continue pages
                }
                // Reads consecutive sequence numbers with one query.
                let most = min(rest.count, maximumScanned - scanned)
                let step: Int64 = isAscending ? 1 : -1
                let stop =
                    isAscending
                    ? leftOut.first { $0.lowerBound > first }?.lowerBound
                    : leftOut.last { $0.upperBound < first }?.upperBound
                let count =
                    (1..<most).first {
                        let next = first + Int64($0) * step
                        return next == stop || next != rest[rest.startIndex + $0]
                    } ?? most
                let last = first + Int64(count - 1) * step
                try statement.bind(.integer(min(first, last)), at: 1)
                try statement.bind(.integer(max(first, last)), at: 2)
                var stopped = last
                while goesOn, try statement.step() {
                    goesOn = try take(statement)
                    if !goesOn { stopped = statement.int64(0) }
                }
                statement.rewind()
                let walked = Int(abs(stopped - first)) + 1
                scanned += walked
                scannedThrough = stopped
                rest = rest.dropFirst(walked)
            }
            if sequences.count < Self.sequencesPerStep || sequences.count != rest.endIndex { return true }
        }
    }
}

/// The conditions of a scan's statement. `?1` and `?2` are the bounds of the sequence numbers that it reads.
struct EventConditions {
    private(set) var text: String
    private(set) var values: [SQLValue]

    init(of appID: String) {
        text = "app_id = ?3"
        values = [.null, .null, .text(appID)]
    }

    /// Adds a condition unless the value is nil. `condition` has a question mark for the value.
    mutating func add(_ condition: String, _ value: SQLValue?) {
        guard let value else { return }
        values.append(value)
        text += " AND " + condition.replacing("?", with: "?\(values.count)")
    }

    mutating func add(anyOf conditions: [(String, SQLValue)]) {
        let texts = conditions.map { condition, value in
            values.append(value)
            return condition.replacing("?", with: "?\(values.count)")
        }
        text += " AND (" + texts.joined(separator: " OR ") + ")"
    }

    mutating func add(_ condition: String) {
        text += " AND " + condition
    }
}
