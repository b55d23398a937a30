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

    @Test func wideCharactersTakeTwoColumns() {
        let table = TextTable(rows: [["山田", "1"], ["👩‍👧", "2"], ["é", "3"]])
        #expect(table.lines == ["山田  1", "👩‍👧    2", "é     3"])
    }

    @Test func aTableThatIsTooWidePrintsEachRowAsABlock() {
        var table = TextTable(rightAligned: [1])
        table.add("KEY", "USED", "DESCRIPTION")
        table.add("05188a308f089ab7", "12", "")
        table.add("aac9c4281f3a7542", "7", "the old one")
        #expect(table.lines(within: 35) == table.lines)
        #expect(
            table.lines(within: 34) == [
                "KEY   05188a308f089ab7", "USED  12", "",
                "KEY          aac9c4281f3a7542", "USED         7", "DESCRIPTION  the old one",
            ])
    }

    @Test func anEmptyTableHasNoLines() {
        #expect(TextTable().lines.isEmpty)
    }
}
