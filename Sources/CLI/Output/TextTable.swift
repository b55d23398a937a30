struct TextTable {
    let rightAligned: Set<Int>
    private(set) var rows: [[String]] = []

    init(rightAligned: Set<Int> = [], rows: [[String]] = []) {
        self.rightAligned = rightAligned
        self.rows = rows
    }

    mutating func add(_ cells: String...) {
        rows.append(cells)
    }

    /// If ``lines`` do not fit, each row becomes a block with a line for each non-empty cell. Nothing is
    /// truncated, so that values can be copied.
    func lines(within width: Int) -> [String] {
        guard rows.count > 1, lines.contains(where: { $0.columns > width }) else { return lines }
        let names = rows[0]
        return Array(
            rows.dropFirst().map { row in
                TextTable(rows: zip(names, row).filter { !$1.isEmpty }.map { [$0, $1] }).lines
            }.joined(separator: [""]))
    }

    var lines: [String] {
        let columns = rows.map(\.count).max() ?? 0
        let widths = (0..<columns).map { column in
            rows.map { column < $0.count ? $0[column].columns : 0 }.max() ?? 0
        }
        return rows.map { row in
            var line = ""
            for (column, cell) in row.enumerated() {
                let padding = String(repeating: " ", count: widths[column] - cell.columns)
                if column > 0 { line += "  " }
                if rightAligned.contains(column) {
                    line += padding + cell
                } else {
                    line += column == row.count - 1 ? cell : cell + padding
                }
            }
            return String(line.reversed().drop { $0 == " " }.reversed())
        }
    }
}

extension String {
    /// The number of columns in a terminal: two for an emoji or an East Asian wide character.
    fileprivate var columns: Int { reduce(0) { $0 + ($1.isWide ? 2 : 1) } }

    /// The first characters that fit into a number of columns.
    func prefix(columns: Int) -> Substring {
        var left = columns
        return prefix {
            left -= $0.isWide ? 2 : 1
            return left >= 0
        }
    }
}

extension Character {
    /// The main ranges of wide and full-width characters in Unicode's EastAsianWidth.txt.
    private static let wide: [ClosedRange<UInt32>] = [
        0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF,
        0xFE30...0xFE6F, 0xFF01...0xFF60, 0xFFE0...0xFFE6, 0x20000...0x3FFFD,
    ]

    fileprivate var isWide: Bool {
        !isASCII
            && unicodeScalars.contains { scalar in
                scalar.properties.isEmojiPresentation || scalar == "\u{FE0F}"
                    || Self.wide.contains { $0.contains(scalar.value) }
            }
    }
}
