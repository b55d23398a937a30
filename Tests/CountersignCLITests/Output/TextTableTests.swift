import Testing

@testable import CountersignCLI

struct TextTableTests {
    @Test func columnsLineUpAndLinesHaveNoTrailingSpace() {
        var table = TextTable(rightAligned: [1])
        table.add("DEVICE", "SENT", "NOTE")
        table.add("a", "1200", "")
        table.add("long name", "7", "x")
        #expect(table.lines == ["DEVICE     SENT  NOTE", "a          1200", "long name     7  x"])
    }

    @Test func anEmptyTableHasNoLines() {
        #expect(TextTable().lines.isEmpty)
    }
}
