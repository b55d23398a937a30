import Foundation
import Testing

@testable import CountersignSQLite

struct SQLiteStatementTests {
    /// The first column's text is bound once for all rows, the others for each row. The longest exceeds the buffer.
    @Test func boundTextsAreStoredCompletelyForEveryRow() throws {
        let connection = try SQLiteConnection(path: ":memory:")
        try connection.execute("CREATE TABLE row (kept TEXT, text TEXT, other TEXT) STRICT")
        let statement = try connection.prepare("INSERT INTO row VALUES (?1, ?2, ?3)")
        let texts =
            ["", "short", "longer than a small string", String(repeating: "ä", count: 3_000), "a\0b"]
            + [String(repeating: "x", count: 9_000), "after the longest"]
        try statement.bind(text: "the same for all", at: 1)
        statement.keepTexts()
        for text in texts {
            try statement.bind(text: text, at: 2)
            try statement.bind(text: text.isEmpty ? nil : String(text.reversed()), at: 3)
            _ = try statement.step()
            statement.rewind()
        }
        statement.reset()
        var found: [String] = []
        let rows = try connection.prepare("SELECT kept, text, other FROM row ORDER BY rowid")
        while try rows.step() {
            #expect(rows.text(0) == "the same for all")
            found.append(rows.text(1))
            #expect(rows.optionalText(2) == (rows.text(1).isEmpty ? nil : String(rows.text(1).reversed())))
        }
        #expect(found == texts)
    }
}
