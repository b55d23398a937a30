struct TextTable {
    /// The right-aligned columns, such as numbers.
    let rightAligned: Set<Int>
    private(set) var rows: [[String]] = []

    init(rightAligned: Set<Int> = [], rows: [[String]] = []) {
        self.rightAligned = rightAligned
        self.rows = rows
    }

    mutating func add(_ cells: String...) {
        rows.append(cells)
    }

    /// The lines for a terminal of this width. If ``lines`` do not fit, each row becomes a block with one
    /// line for each non-empty cell, after the column's name. Nothing is truncated, so that values can be
    /// copied.
    func lines(within width: Int) -> [String] {
        guard rows.count > 1, lines.contains(where: { $0.count > width }) else { return lines }
        let names = rows[0]
        return Array(
            rows.dropFirst().map { row in
                TextTable(rows: zip(names, row).filter { !$1.isEmpty }.map { [$0, $1] }).lines
            }.joined(separator: [""]))
    }

    /// The rows as lines, with two spaces between columns and no trailing spaces.
    var lines: [String] {
        let columns = rows.map(\.count).max() ?? 0
        let widths = (0..<columns).map { column in
            rows.map { column < $0.count ? $0[column].count : 0 }.max() ?? 0
        }
        return rows.map { row in
            var line = ""
            for (column, cell) in row.enumerated() {
                let padding = String(repeating: " ", count: widths[column] - cell.count)
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
