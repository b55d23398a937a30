extension CommandIO {
    func print(_ table: TextTable) throws {
        for line in table.lines { try print(line) }
    }

    /// Prints a table with column names in its first row. On a narrow terminal, prints each row as a block.
    func print(list table: TextTable) throws {
        for line in width.map(table.lines(within:)) ?? table.lines { try print(line) }
    }
}
