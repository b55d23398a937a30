import CountersignCore
import Testing

@testable import CountersignCLI

struct SendInputTests {
    private func input(_ text: String, _ name: String = "events.ndjson") -> SendInput {
        SendInput(Array(text.utf8), named: name, format: nil)
    }

    private func member(_ event: SendEvent, _ name: String) -> JSONValue? {
        if case .object(let members) = event.message { members[name] } else { nil }
    }

    @Test func aLineWithoutAnIDGetsTheSameOneEveryTime() throws {
        let text = """
            {"event":"Order Completed","userId":"user-1"}

            {"event":"Order Completed","userId":"user-1","messageId":"own","type":"track"}
            [1]
            {"event":"x","event":"y"}
            """
        let first = input(text)
        #expect(first.events.map(\.line) == [1, 3])
        #expect(first.problems.map(\.line) == [4, 5])
        #expect(first.events[0].userID == "user-1")
        #expect(member(first.events[1], "messageId") == "own")
        #expect(member(first.events[0], "messageId") == member(input(text).events[0], "messageId"))
        #expect(
            member(first.events[0], "messageId")
                != member(input(text, "other.ndjson").events[0], "messageId"))
    }

    @Test func columnsThatAreNotTheEventsOwnBecomeProperties() throws {
        let text =
            "event,user_id,timestamp,total,note\r\n"
            + "Order Completed,user-1,2026-11-21T08:30:00Z,42.5,\"tea, \"\"green\"\"\nfor two\"\r\n"
            + "Order Completed,user-2,,7\r\nLogged In,user-3,,,\r\n"
        let read = input(text, "orders.csv")
        #expect(read.events.map(\.line) == [2, 5])
        #expect(read.problems == [.init(line: 4, reason: "the row has 4 fields and the header 5")])
        #expect(
            member(read.events[0], "properties") == ["total": 42.5, "note": "tea, \"green\"\nfor two"])
        #expect(member(read.events[0], "timestamp") == "2026-11-21T08:30:00Z")
        #expect(member(read.events[1], "properties") == [:])
    }

    @Test func theFirstByteTellsWhereTheNameDoesNot() {
        #expect(input(#"{"event":"a","userId":"b"}"#, "-").events.count == 1)
        let line = #"192.0.2.1 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1 "-" "-""#
        #expect(input(line, "-").events.count == 1)
    }
}
