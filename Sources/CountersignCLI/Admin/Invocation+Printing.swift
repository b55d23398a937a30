internal import CountersignCore

extension Invocation {
    /// Prints an answer: with `--json` as it is, else as `text` does it.
    func print(_ answer: JSONValue, text: () throws -> Void) throws {
        if isSet(.json) { try io.print(answer) } else { try text() }
    }

    /// Prints an answer: with `--json` as it is, else as the rows of a table.
    func printTable(_ answer: JSONValue, rows: (inout TextTable) throws -> Void) throws {
        try print(answer) {
            var table = TextTable()
            try rows(&table)
            try io.print(table)
        }
    }

    /// Prints an answer with a secret that is shown only once: with `--json` as it is, else the secret after `notice`.
    func printSecret(_ name: String, of answer: JSONValue, notice: String) throws {
        try print(answer) {
            io.say(notice)
            try io.print(answer[name].shown)
        }
    }

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
