import CountersignCore
import Testing

@testable import CountersignCLI

struct SendInputTests {
    private func input(_ text: String, _ name: String = "events.ndjson") -> SendInput {
        SendInput(Array(text.utf8), named: name, format: nil)
    }

    private func input(_ bytes: [UInt8], _ name: String = "events.ndjson") -> SendInput {
        SendInput(bytes, named: name, format: nil)
    }

    private func properties(_ event: SendEvent?) -> JSONValue? { event.flatMap { member($0, "properties") } }

    private func member(_ event: SendEvent, _ name: String) -> JSONValue? {
        if case .object(let members) = event.message { members[name] } else { nil }
    }

    @Test func aLineWithoutAnIDGetsAStableMessageID() throws {
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

    @Test(arguments: [#""""#, "null"]) func missingIDsAreDerivedDeterministically(id: String) throws {
        let text = #"{"event":"a","userId":"u","messageId":\#(id)}"#
        guard case .string(let made)? = try member(#require(input(text).events.first), "messageId") else {
            throw CancellationError()
        }
        #expect(!made.isEmpty)
        #expect(try member(#require(input(text).events.first), "messageId") == .string(made))
    }

    /// A batch adds two levels. The gateway accepts 64.
    @Test func aLineThatIsTooDeepForABatchIsSkipped() {
        func line(_ levels: Int) -> String {
            let arrays =
                String(repeating: "[", count: levels - 1) + "1" + String(repeating: "]", count: levels - 1)
            return #"{"event":"a","userId":"u","p":\#(arrays)}"#
        }
        let read = input([line(3), line(62), line(63)].joined(separator: "\n"))
        #expect(read.events.map(\.line) == [1, 2])
        #expect(read.problems == [.init(line: 3, reason: "it is nested deeper than 62 levels")])
    }

    @Test func unknownCSVColumnsBecomeProperties() throws {
        let text =
            "event,user_id,timestamp,total,note\r\n"
            + "Order Completed,user-1,2026-11-21T08:30:00Z,42.5,\"tea, \"\"green\"\"\nfor two\"\r\n"
            + "Order Completed,user-2,,7\r\nLogged In,user-3,,,\r\n"
        let read = input(text, "orders.csv")
        #expect(read.events.map(\.line) == [2, 5])
        #expect(read.problems == [.init(line: 4, reason: "the row has 4 fields and the header 5")])
        #expect(member(read.events[0], "properties") == ["total": 42.5, "note": "tea, \"green\"\nfor two"])
        #expect(member(read.events[0], "timestamp") == "2026-11-21T08:30:00Z")
        #expect(member(read.events[1], "properties") == [:])
    }

    @Test(arguments: ["user_id,anonymous_id,message_id", "userId,anonymousId,messageId"])
    func columnsMayBeInSnakeCaseOrCamelCase(header: String) {
        let read = input("type,event,\(header)\ntrack,a,user-1,device-1,m-1\n", "orders.csv")
        #expect(read.events.first?.userID == "user-1")
        for (name, value) in [("userId", "user-1"), ("anonymousId", "device-1"), ("messageId", "m-1")] {
            #expect(read.events.first.map { member($0, name) } == .string(value))
        }
        #expect(read.events.first.map { member($0, "properties") } == [:])
    }

    @Test(arguments: [
        ("event,user_id,userId", "the columns user_id and userId mean the same"),
        ("event,name,user_id", "the columns event and name mean the same"),
        ("anonymousId,anonymous_id", "the columns anonymousId and anonymous_id mean the same"),
        ("event,total,total", "the column total appears twice"),
        ("event,timestamp,timestamp", "the column timestamp appears twice"),
    ])
    func twoColumnsForOneValueAreAnError(header: String, reason: String) {
        let read = input(header + "\na,b,c\n", "orders.csv")
        #expect(read.events.isEmpty)
        #expect(read.problems == [.init(line: 1, reason: reason + "; rename or remove one, nothing is read")])
    }

    @Test(arguments: ["userId;event", "userId\tevent", "userId|event", "userId;event;price, EUR"])
    func otherSeparatorsAreReportedOnce(header: String) {
        let read = input("\u{FEFF}\(header)\r\nu;a\r\nu;b\r\n", "orders.csv")
        #expect(read.events.isEmpty)
        #expect(
            read.problems == [.init(line: 1, reason: "columns must be separated by commas; nothing is read")])
    }

    @Test func aValueInAColumnWithoutANameIsReported() {
        let read = input("event,user_id,,\na,u,,\na,u,1,\n", "orders.csv")
        #expect(read.events.map(\.line) == [2])
        #expect(read.problems == [.init(line: 3, reason: "a column without a name has the value 1")])
    }

    @Test func theFormatOfStandardInputIsDetectedFromTheFirstByte() {
        #expect(input(#"{"event":"a","userId":"b"}"#, "-").events.count == 1)
        let line = #"192.0.2.1 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1 "-" "-""#
        #expect(input(line, "-").events.count == 1)
    }

    @Test(arguments: [
        (#"{"a":1,"a":2}"#, "an object has a duplicate member"), (#"{"a":"#, "it is not JSON"),
        ("[1]", "it is not a JSON object"), (#"{"a":1e999}"#, "a number is out of range"),
        (
            String(repeating: "[", count: 70) + String(repeating: "]", count: 70),
            "it is nested deeper than 62 levels"
        ),
        (#"{"a":""# + String(repeating: "x", count: 1 << 20) + "\"}", "it is longer than 1 MiB"),
    ])
    func anUnreadableLineIsReportedWithAReason(text: String, reason: String) {
        #expect(input(text).problems == [.init(line: 1, reason: reason)])
    }

    @Test(arguments: [
        ("events.ndjson", #"{"event":"a"}"#), ("events.csv", "event\na"),
        ("access.log", #"192.0.2.1 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1 "-" "-""#),
        ("walk.gpx", #"<gpx><trk><trkpt lat="1" lon="2"/></trk></gpx>"#),
        ("-", #"{"event":"a"}"#),
    ])
    func aByteOrderMarkIsNotAPartOfTheFirstEvent(name: String, text: String) {
        let read = input([0xEF, 0xBB, 0xBF] + Array(text.utf8), name)
        #expect(read.problems.isEmpty)
        #expect(read.events.count == 1)
        let plain = input(text, name == "-" ? "events.ndjson" : name)
        #expect(read.events.first?.userID == plain.events.first?.userID)
        #expect(
            read.events.first.flatMap { member($0, "event") }
                == plain.events.first.flatMap { member($0, "event") })
    }

    @Test(arguments: [
        ("events.ndjson", #"{"event":"a"}"#, #"{"event":"?"}"#), ("events.csv", "event\na", "?"),
        (
            "access.log", #"192.0.2.1 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1 "-" "-""#,
            #"192.0.2.1 - - [17/May/2015:10:05:03 +0000] "GET /? HTTP/1.1" 200 1 "-" "-""#
        ),
    ])
    func bytesThatAreNotUTF8AreNotSent(name: String, good: String, bad: String) {
        let damaged = Array(bad.utf8).map { $0 == UInt8(ascii: "?") ? 0xE9 : $0 }
        let read = input(Array((good + "\n").utf8) + damaged + [0x0A] + Array(good.utf8.suffix(99)), name)
        let line = good.utf8.filter { $0 == 0x0A }.count + 2
        #expect(read.problems.first == .init(line: line, reason: "it is not UTF-8"))
        #expect(read.events.first?.line == line - 1)
    }

    @Test func aTrackIsReadUpToBytesThatAreNotUTF8() {
        let head = Array("<gpx><trk>\n<trkpt lat=\"1\" lon=\"2\"/>\n<name>".utf8)
        let tail = Array("</name>\n<trkpt lat=\"3\" lon=\"4\"/></trk></gpx>".utf8)
        let read = input(head + [0xE9] + tail, "walk.gpx")
        #expect(read.problems.map(\.line) == [3])
        #expect(read.events.map(\.line) == [2])
    }

    @Test(arguments: [
        "+491701234567", "00501", "0x1A", "1e3", "12345678901234567890", "1.10", "-0", " 1", "inf", "nan",
        ".5",
        "true", "false",
    ])
    func aFieldThatIsNotAPlainNumberStaysText(field: String) {
        let read = input("event,value\nx,\(field)", "values.csv")
        #expect(properties(read.events.first) == ["value": .string(field)])
    }

    @Test(arguments: [
        ("42", JSONValue.integer(42)), ("-7", .integer(-7)), ("1.5", .number(1.5)), ("0", .integer(0)),
    ])
    func aPlainNumberBecomesAJSONNumber(field: String, value: JSONValue) {
        #expect(properties(input("event,value\nx,\(field)", "values.csv").events.first) == ["value": value])
    }

    @Test func anUnclosedQuoteIsAnErrorOnTheLineWhereItOpens() {
        let read = input("event,note\na,b\nc,\"d\"\ne,\"f\ng,h\n", "notes.csv")
        #expect(read.events.map(\.line) == [2, 3])
        #expect(
            read.problems == [
                .init(line: 4, reason: "the quote that opens here is never closed; nothing after it is read")
            ])
        let later = input("event,note,more\na,\"b\nc\",\"d\ne", "notes.csv")
        #expect(later.events.isEmpty)
        #expect(later.problems.map(\.line) == [3])
        #expect(input("event,\"", "notes.csv").problems.map(\.line) == [1])
    }

    @Test func aBadLineDoesNotShiftLineNumbersOfLaterEvents() throws {
        let line = #"192.0.2.1 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1 "-" "-""#
        let log = input("\(line)\nnonsense\n\n\(line)\n", "access.log")
        #expect(log.events.map(\.line) == [1, 4])
        let moved = input("\(line)\n\(line)\n", "access.log")
        #expect(moved.events.map(\.line) == [1, 2])
        #expect(
            member(try #require(log.events.last), "messageId")
                != member(try #require(moved.events.last), "messageId"))
        let points = """
            <gpx><trk>
            <trkpt lat="1" lon="2"/>
            <trkpt lat="x" lon="2"/>
            <trkpt lat="1" lon="2"/><trkpt lat="1" lon="2"/>
            </trk></gpx>
            """
        let track = input(points, "walk.gpx")
        #expect(track.problems.map(\.line) == [3])
        #expect(track.events.map(\.line) == [2, 4, 4])
        #expect(Set(track.events.map { member($0, "messageId") }).count == 3)
    }

    @Test func eachReadingOfStandardInputGetsNewMessageIDs() throws {
        let text = #"{"event":"Order Completed","userId":"user-1"}"#
        for name in ["-", "events.ndjson"] {
            let ids = try (0..<2).map { _ in member(try #require(input(text, name).events.first), "messageId")
            }
            #expect((ids[0] == ids[1]) == (name != "-"))
        }
    }
}
