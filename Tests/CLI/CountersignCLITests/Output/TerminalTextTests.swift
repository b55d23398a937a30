import CountersignCore
import Testing

@testable import CountersignCLI

/// Text from clients on a terminal.
struct TerminalTextTests {
    private let event: JSONValue = ["user": "a\u{202E}b\u{9B}31m\u{2028}é👩‍👧\u{7F}\u{1B}[2J"]

    @Test func jsonOnATerminalEscapesControlCharacters() throws {
        let watched = RecordedIO(isOutputWatched: true)
        try watched.io.print(event)
        #expect(
            watched.output
                == #"{"user":"a\u202eb\u009b31m\u2028é👩‍👧\u007f\u001b[2J"}"# + "\n")
        let escaped = Array(watched.output.utf8.dropLast())
        #expect(JSONValue(parsing: escaped) == event)
    }

    @Test func jsonInAPipeIsUnchanged() throws {
        let piped = RecordedIO()
        try piped.io.print(event)
        #expect(Array(piped.output.utf8) == event.bytes + [0x0A])
    }

    @Test func tablesAndLinesHaveNoControlCharacters() {
        #expect(event.shown == #"{"user":"a\#u{FFFD}b\#u{FFFD}31m\#u{FFFD}é👩‍👧\u007f\u001b[2J"}"#)
        #expect(TerminalText.safe("a\u{202E}b\u{9B}c\u{1B}\n") == "a\u{FFFD}b\u{FFFD}c\u{FFFD}\u{FFFD}")
        #expect(TerminalText.safe("👩‍👧") == "👩‍👧")
        #expect(TerminalText.safe(lines: "a\u{1B}b\nc\u{202E}\n") == "a\u{FFFD}b\nc\u{FFFD}\n")
        // Lines of CSV end with CR LF. A CR alone would let the rest of the line overwrite its beginning.
        #expect(TerminalText.safe(lines: "a\r\n\r\nb\rc\r\r\n") == "a\r\n\r\nb\u{FFFD}c\u{FFFD}\r\n")
    }
}
