internal import CountersignCore
internal import CountersignCrypto
internal import CountersignSQLite
package import GatewayModel

/// Copies all data between two storages and compares the result. Rows are copied in groups ordered by key, each in a
/// transaction. An interrupted copy resumes after the last row in the target.
package struct StorageCopy {
    package struct Compared: Sendable, Equatable {
        package let table: String
        package let from: CopyChecksum
        package let to: CopyChecksum
        package var isSame: Bool { from == to }
    }

    private let source: any CopyEndpoint
    private let target: any CopyEndpoint
    private let tables: [CopyTable]

    package init(from source: any CopyEndpoint, to target: any CopyEndpoint, tables: [CopyTable]) {
        self.source = source
        self.target = target
        self.tables = tables
    }

    /// `report` receives the table and its number of copied rows after each group. Throws `conflict` when the target
    /// has other data, and `alreadyRunning` when a gateway runs.
    package func copy(_ report: (String, Int) throws -> Void = { _, _ in }) throws(GatewayError) {
        try GatewayError.storing {
            try source.checkStopped()
            try target.checkStopped()
            let log = try source.log()
            try target.begin(log, tables)
            for table in tables { try copy(table, report) }
            try target.complete(log, try source.numbers(), tables)
        }
    }

    private func copy(_ table: CopyTable, _ report: (String, Int) throws -> Void) throws {
        let key = source.key(of: table)
        let places = key.compactMap { name in table.columns.firstIndex { $0.name == name } }
        var lastKey = table.isWrittenWhole ? [] : try target.lastKey(in: table, by: key)
        var count = 0
        while true {
            let rows = try source.rows(of: table, after: lastKey, most: .standard)
            guard let last = rows.last else { return }
            try target.write(rows, to: table)
            lastKey = places.map { last[$0] }
            count += rows.count
            try report(table.name, count)
        }
    }

    /// Compares all tables. If all are equal, removes the marker of an unfinished copy from the target.
    package func compare(_ report: (Compared) throws -> Void = { _ in }) throws(GatewayError) -> [Compared] {
        try GatewayError.storing {
            var all: [Compared] = []
            for table in tables {
                let one = Compared(
                    table: table.name, from: try Self.sum(of: table, in: source),
                    to: try Self.sum(of: table, in: target))
                try report(one)
                all.append(one)
            }
            // A gateway that ran during the comparison may have changed rows already read.
            try source.checkStopped()
            try target.checkStopped()
            if all.allSatisfy(\.isSame) { try target.finish() }
            return all
        }
    }

    private static func sum(of table: CopyTable, in place: any CopyEndpoint) throws -> CopyChecksum {
        let key = place.key(of: table)
        let places = key.compactMap { name in table.columns.firstIndex { $0.name == name } }
        var lastKey: [SQLValue] = []
        var sum = CopyChecksum()
        while true {
            let rows = try place.rows(of: table, after: lastKey, most: .standard)
            guard let last = rows.last else { return sum }
            for row in rows { sum.add(row) }
            lastKey = places.map { last[$0] }
        }
    }
}

/// The number of rows and the sum of their SHA-256 digests, independent of the engine and the order.
package struct CopyChecksum: Sendable, Equatable {
    package private(set) var rows = 0
    private var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)

    /// 64 hexadecimal digits.
    package var hash: String {
        [words.0, words.1, words.2, words.3].map { word in
            let digits = String(word, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }

    mutating func add(_ row: [SQLValue]) {
        var bytes: [UInt8] = []
        func append(_ kind: UInt8, _ content: some Collection<UInt8>) {
            bytes.append(kind)
            withUnsafeBytes(of: UInt64(content.count).bigEndian) { bytes.append(contentsOf: $0) }
            bytes.append(contentsOf: content)
        }
        for value in row {
            switch value {
            case .null: append(0, [])
            case .integer(let number): append(1, withUnsafeBytes(of: number.bigEndian) { Array($0) })
            case .real(let number): append(2, withUnsafeBytes(of: number.bitPattern.bigEndian) { Array($0) })
            // PostgreSQL cannot store U+0000, so the gateway stores U+FFFD instead.
            case .text(let text):
                append(3, (text.utf8.contains(0) ? text.replacing("\0", with: "\u{FFFD}") : text).utf8)
            case .blob(let blob): append(4, blob)
            }
        }
        let digest = bytes.withUnsafeBytes { SHA256.words($0) }
        rows += 1
        words.0 &+= digest.0
        words.1 &+= digest.1
        words.2 &+= digest.2
        words.3 &+= digest.3
    }

    package static func == (one: CopyChecksum, other: CopyChecksum) -> Bool {
        one.rows == other.rows && one.words == other.words
    }
}
