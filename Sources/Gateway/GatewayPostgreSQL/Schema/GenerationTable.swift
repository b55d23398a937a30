/// The table that counts, for each kind of data, the transactions that have changed it. Exclusive transactions lock
/// the row of their kind.
enum GenerationTable {
    static let script = """
        CREATE TABLE generation (kind TEXT PRIMARY KEY, number BIGINT NOT NULL) WITH (fillfactor = 50);
        INSERT INTO generation
            SELECT kind, 1 FROM unnest(ARRAY[\(kinds)]) AS kind;

        """

    private static let kinds = DataKind.allCases.map { "'\($0.rawValue)'" }.joined(separator: ", ")
}
