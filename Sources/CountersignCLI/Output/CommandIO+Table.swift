extension CommandIO {
    /// Prints a table.
    func print(_ table: TextTable) throws {
        for line in table.lines { try print(line) }
    }

    /// Prints a table whose first row names the columns; on a terminal that is too narrow for it, one row below the other.
    func print(list table: TextTable) throws {
        for line in width.map(table.lines(within:)) ?? table.lines { try print(line) }
    }
}
