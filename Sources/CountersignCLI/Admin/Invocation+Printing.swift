internal import CountersignCore

extension Invocation {
    /// Prints a list: with `--json` as one array of what the API has, else as a table.
    ///
    /// - Parameters:
    ///   - items: The list.
    ///   - header: The names of the columns.
    ///   - rightAligned: Columns of numbers.
    ///   - empty: What is said of an empty list.
    ///   - row: An item's cells.
    /// - Throws: When nobody can take the output.
    func printList(
        _ items: [JSONValue], header: [String], rightAligned: Set<Int> = [], empty: String,
        row: (JSONValue) -> [String]
    ) throws {
        if isSet(.json) { return try io.print(.array(items)) }
        guard !items.isEmpty else { return io.say(empty) }
        try io.print(TextTable(rightAligned: rightAligned, rows: [header] + items.map(row)))
    }
}
