import CountersignCore
import Foundation
import Testing

@testable import CountersignCLI

struct AccessLogTests {
    private let line =
        #"83.149.9.216 - ann [17/May/2015:10:05:03 +0200] "GET /a?b=c HTTP/1.1" 200 203023 "http://x.example/" "Agent 1""#

    @Test func readsEveryField() throws {
        let event = try AccessLog.event(line)
        #expect(event.userID == "83.149.9.216")
        #expect(event.name == "Page Viewed")
        #expect(
            event.properties == [
                "time": "2015-05-17T08:05:03.000Z", "status": 200, "bytes": 203023, "method": "GET",
                "path": "/a?b=c",
                "referrer": "http://x.example/", "user_agent": "Agent 1", "account": "ann",
            ])
    }

    @Test(arguments: [
        (
            #"a - - [17/May/2015:10:05:03 +0000] "-" 408 - "-" "-""#,
            ["status": 408, "bytes": 0] as JSONObject
        ),
        (
            #"a - - [17/May/2015:10:05:03 +0000] "\x16\x03" 400 1 "-" "-""#,
            ["status": 400, "bytes": 1, "request": #"\x16\x03"#] as JSONObject
        ),
        (
            #"a - - [17/May/2015:10:05:03 +0000] "GET /\"q\\ HTTP/1.0" 200 1 "-" "x"  "#,
            ["status": 200, "bytes": 1, "method": "GET", "path": #"/"q\"#, "user_agent": "x"] as JSONObject
        ),
        (
            #"a - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.0" 200 1 "-" "cut sho"#,
            ["status": 200, "bytes": 1, "method": "GET", "path": "/", "user_agent": "cut sho"] as JSONObject
        ),
        (
            #"a - - [17/May/2015:10:05:03 +0000] "GET /a b HTTP/1.0" 200 1 "-" "-""#,
            ["status": 200, "bytes": 1, "request": "GET /a b HTTP/1.0"] as JSONObject
        ),
    ])
    func linesOfRealServersAreRead(line: String, properties: JSONObject) throws {
        var expected = properties
        expected["time"] = "2015-05-17T10:05:03.000Z"
        #expect(try AccessLog.event(line).properties == expected)
    }

    /// A line up to the request.
    private static let start = #"a - - [17/May/2015:10:05:03 +0000] "-""#

    @Test(arguments: [
        ("", "the client address is missing"), ("a", "the identity is missing"),
        ("a - - 17/May/2015", "the time is not in [ ]"),
        ("a - - [17/May/2015:10:05:03 +0000] GET", "the request is not in quotes"),
        ("a - - [17/May/2015:10:05:03 +0000] \"GET", "the request has no closing quote"),
        (start + #" 99 1 "-" "-""#, "the status is not a number from 100 to 599"),
        (start + #" ok 1 "-" "-""#, "the status is not a number from 100 to 599"),
        (start + #" 200 -1 "-" "-""#, "the size is neither a number nor -"),
        (start + #" 200 1 "-""#, "the user agent is not in quotes"),
        (start + #" 200 1 "-" "-" x"#, "something follows the user agent"),
        (
            "a\u{7} - - [17/May/2015:10:05:03 +0000] \"-\" 200 1 \"-\" \"-\"",
            "the client address has control characters or over 255 bytes"
        ),
    ])
    func errorsNameTheFaultOfALine(line: String, reason: String) {
        let problem = #expect(throws: AccessLog.LineProblem.self) { try AccessLog.event(line) }
        #expect(problem?.reason == reason)
    }

    @Test(arguments: [
        "17/Mai/2015:10:05:03 +0000", "32/May/2015:10:05:03 +0000", "17/May/2015:10:05:03+0000",
    ])
    func anInvalidTimeIsReportedWithAnExample(time: String) {
        let line = #"a - - [\#(time)] "-" 200 1 "-" "-""#
        let problem = #expect(throws: AccessLog.LineProblem.self) { try AccessLog.event(line) }
        #expect(problem?.reason == "the time is not like 17/May/2015:10:05:03 +0000")
    }

    @Test func aBadLineIsReportedAndItsNeighboursAreKept() {
        let replay = AccessLog.read(Data("\(line)\r\nnonsense\n\n\(line)\n".utf8), named: "x.log")
        #expect(replay.events.count == 2)
        #expect(replay.problems == [Replay.Problem(line: 2, reason: "the identity is missing")])
    }

    @Test func everyLineOfTheExampleIsAnEvent() throws {
        let replay = try Replay.read(path: Package.folder.path + "/Examples/Inputs/access.log")
        #expect(replay.events.count == 20)
        #expect(replay.problems.isEmpty)
        #expect(Set(replay.events.map(\.userID)).count == 5)
    }

    @Test(.enabled(if: SharedData.exists("access.log")))
    func everyLineOfARealAccessLogIsAnEvent() throws {
        let replay = try Replay.read(path: SharedData.path("access.log"))
        #expect(replay.events.count == 10_000)
        #expect(replay.problems.isEmpty)
        #expect(Set(replay.events.map(\.userID)).count == 1_753)
    }
}
