/// Rows in columns that line up.
struct TextTable {
    /// Columns whose cells end at the same place, such as numbers.
    let rightAligned: Set<Int>
    private(set) var rows: [[String]] = []

    init(rightAligned: Set<Int> = [], rows: [[String]] = []) {
        self.rightAligned = rightAligned
        self.rows = rows
    }

    mutating func add(_ cells: String...) {
        rows.append(cells)
    }

    /// The rows as lines, two spaces between columns, nothing after the last.
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
