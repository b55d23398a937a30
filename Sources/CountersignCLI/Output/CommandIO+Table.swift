extension CommandIO {
    /// Prints a table.
    func print(_ table: TextTable) throws {
        for line in table.lines { try print(line) }
    }
}
