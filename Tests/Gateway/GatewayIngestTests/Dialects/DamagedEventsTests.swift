import CountersignGateway
import CountersignGatewayTesting
import CountersignJSON
import Foundation
import GatewayModel
import GatewayTestSupport
import Testing

/// An event that is not JSON is rejected alone, in every dialect.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct DamagedEventsTests {
    private let fixture: GatewayFixture
    private let connection: any TestClient

    init() throws {
        fixture = try GatewayFixture(.standard, enforcement: .disabled)
        connection = try fixture.client()
    }

    private func post(_ body: [UInt8], _ shape: WireShape) throws -> TestAnswer {
        try shape.send(body, to: fixture, connection)
    }

    private func stored() throws -> [String] { try fixture.rows("message_id").compactMap(\.[0]) }

    private func rejected(_ answer: TestAnswer) -> [[String: Any]] {
        (answer.json["rejected"] ?? answer.json["errors"]) as? [[String: Any]] ?? []
    }

    private func expectStoredBodiesAreJSON() throws {
        for body in try fixture.rows("body").compactMap(\.[0]) {
            #expect(throws: Never.self) {
                try StrictJSONParser(maximumBytes: 10_000).parse(bytes: Array(body.utf8)) { _ in }
            }
        }
    }

    static let damages: [[UInt8]] =
        [
            #""t":1,"t":2"#, #""t":{"a":1,"a":2}"#, #""t":1e400"#, #""t":-1e400"#,
            #""t":"# + String(repeating: "[", count: 70) + String(repeating: "]", count: 70),
            #""t":"# + String(repeating: "[", count: 63) + "1" + String(repeating: "]", count: 63),
            #""t":"\x""#, #""t":"\u12""#, "\"t\":\"\u{1}\"", "\"t\":\"a\u{0}b\"", #""t":nan"#, #""t":01"#,
            #""t":"#, #""t""#, #""t":'x'"#, #""t":tru"#,
            // Two member names that become equal when their unpaired surrogates are replaced.
            #""a\ud83d":1,"a\ud83e":2"#,
        ].map { Array($0.utf8) } + [
            [0x22, 0x74, 0x22, 0x3A, 0x22, 0xC3, 0x28, 0x22], [0x22, 0xFF, 0x22, 0x3A, 0x31],
        ]

    @Test(arguments: WireShape.lists)
    func aDamagedEventIsRejectedAlone(shape: WireShape) throws {
        for (number, damage) in Self.damages.enumerated() {
            let bad =
                Array(shape.event("bad-\(number)").utf8.dropLast()) + [UInt8(ascii: ",")] + damage + [0x7D]
            let answer = try post(
                shape.body([
                    Array(shape.event("a-\(number)").utf8), bad,
                    Array(shape.event("b-\(number)", ["x": #""\u00e9\ud83d\ude00 \\ud83d""#]).utf8),
                ]), shape)
            let what = String(decoding: damage, as: UTF8.self)
            #expect((200...201).contains(answer.status), "\(what)")
            #expect(rejected(answer).map { $0["index"] as? Int } == [1], "\(what)")
            #expect(rejected(answer).map { $0["code"] as? String } == ["invalid_json"], "\(what)")
            #expect(try stored().suffix(2) == ["a-\(number)", "b-\(number)"], "\(what)")
        }
        #expect(try stored().count == 2 * Self.damages.count)
        try expectStoredBodiesAreJSON()
    }

    static let unusableNumbers =
        ["1e400", "1e999", "-1e400", "1E+400", "9e99999999999999999999", "1.5e309", "-0.1e400"]
        + [String(repeating: "9", count: 310), "-" + String(repeating: "1", count: 5_000) + ".5"]

    /// An event is not lost because its time is outside the range of a double.
    @Test(arguments: WireShape.lists)
    func anEventWhoseTimeIsOutOfRangeHasTheTimeOfReceipt(shape: WireShape) throws {
        let name = shape.dialect.time
        let escaped = #"\u00\#(String(name.utf8.first ?? 0, radix: 16))\#(name.dropFirst())"#
        let times = Self.unusableNumbers.map { (name, $0) } + [(escaped, " 1e400 ")]
        for (number, (name, time)) in times.enumerated() {
            let before = Int64(Date().timeIntervalSince1970 * 1_000) - 1_000
            let answer = try post(
                shape.body(
                    shape.event("a-\(number)", [name: time]), shape.event("b-\(number)"),
                    shape.event("c-\(number)", [name: time, "x": "1e400"]),
                    shape.event("d-\(number)", ["properties": #"{"\#(name)":\#(time)}"#])), shape)
            #expect((200...201).contains(answer.status), "\(time)")
            #expect(rejected(answer).map { $0["index"] as? Int } == [2, 3], "\(time)")
            let warnings = answer.json["warnings"] as? [[String: Any]]
            #expect(warnings?.map { $0["index"] as? Int } == [0], "\(time)")
            #expect(warnings?.map { $0["code"] as? String } == ["time_replaced"], "\(time)")
            #expect(try stored().suffix(2) == ["a-\(number)", "b-\(number)"], "\(time)")
            let rows = try fixture.rows("timestamp_ms", "body").suffix(2)
            #expect(rows.allSatisfy { $0[0].flatMap(Int64.init) ?? 0 >= before }, "\(time)")
            #expect(
                rows.first?[1]?.contains(#":null"#) == true || rows.first?[1]?.contains(#": null"#) == true)
        }
        try expectStoredBodiesAreJSON()
    }

    @Test(arguments: unusableNumbers)
    func aSingleEventWhoseTimeIsOutOfRangeHasTheTimeOfReceipt(number: String) throws {
        func post(_ shape: WireShape, _ path: String, _ members: KeyValuePairs<String, String>) throws
            -> TestAnswer
        {
            let id = "m-\(try stored().count)"
            return try shape.send(shape.body(shape.event(id, members)), to: fixture, connection, at: path)
        }
        func codes(_ answer: TestAnswer) -> [String?]? {
            (answer.json["warnings"] as? [[String: Any]])?.map { $0["code"] as? String }
        }
        for shape in WireShape.all where shape.isSingle {
            let time = shape.dialect.time
            for path in shape.paths {
                let count = try stored().count
                #expect(try codes(post(shape, path, [time: number])) == ["time_replaced"], "\(path)")
                #expect(try stored().count == count + 1)
                // In another member, such a number rejects the event.
                let answer = try post(shape, path, ["properties": #"{"\#(time)":\#(number)}"#])
                #expect(answer.status >= 400 || rejected(answer).count == 1, "\(path)")
                #expect(try stored().count == count + 1)
            }
        }
        for path in WireShape.tracked.paths {
            for members in [["age": number], ["age": "62167219201"], ["age": "5", "timestamp": number]]
                as [KeyValuePairs<String, String>]
            {
                #expect(try codes(post(.tracked, path, members)) == ["time_replaced"], "\(path) \(members)")
            }
            // A valid `timestamp` is used even if `age` is out of range.
            let read = try post(.tracked, path, ["age": number, "timestamp": "1795249800"])
            #expect(read.status == 200 && codes(read) == nil)
            #expect(try fixture.rows("timestamp_ms").last == ["1795249800000"])
        }
    }

    /// Segment's Python client discards a whole batch that is rejected because of half an emoji.
    @Test(arguments: WireShape.lists)
    func halfASurrogatePairIsStoredAsTheReplacementCharacter(shape: WireShape) throws {
        let halves: KeyValuePairs = [
            "t": #""a\ud83d""#, "u": #"["\uDE00","\ud83d\ud83d\ude00"]"#, #"\udfff"#: #""\\ud83d\\\ud83dx""#,
        ]
        let answer = try post(shape.body(shape.event("m-1", halves), shape.event("m-2")), shape)
        #expect((200...201).contains(answer.status))
        #expect(rejected(answer).isEmpty)
        #expect(try stored() == ["m-1", "m-2"])
        let body = try #require(try fixture.rows("body")[0][0])
        #expect(
            body.contains(
                #""t":"a\ufffd","u":["\ufffd","\ufffd\ud83d\ude00"],"\ufffd":"\\ud83d\\\ufffdx""#))
    }

    @Test(arguments: WireShape.lists)
    func anIDWithHalfASurrogatePairIsRejected(shape: WireShape) throws {
        for name in shape.dialect.ids {
            let bad = shape.event("m", [name: #""a\ud83d""#])
            let good = shape.event("good-\(name)", ["t": #""\ud83d""#, "id": #""\ufffd""#])
            let answer = try post(shape.body(bad, good), shape)
            #expect(rejected(answer).map { $0["index"] as? Int } == [0], "\(name)")
            #expect(rejected(answer).map { $0["code"] as? String } == ["invalid_event"], "\(name)")
            #expect(try stored().last == "good-\(name)")
        }
        #expect(try stored().count == shape.dialect.ids.count)
    }

    /// A body is rejected if the ends of its events cannot be found.
    @Test(arguments: [
        #"{"batch":[{"type":"track"]}"#, #"{"batch":[{"a":"x},{"b":1}]}"#, #"{"batch":[{} {}]}"#,
        #"{"batch":[{},]}"#, #"{"batch":[{}],"batch":[{"a":1,"a":2}]}"#, #"{"batch":[{"a":[}]}"#,
        #"{"batch":[{}]"#, #"{"batch":[{"a":1,"a":2}]} x"#, #"{"batch":[{"a":1,"a":2}],"writeKey":"\#u{1}"}"#,
    ])
    func aBodyWhoseStructureIsBrokenIsRejectedAsAWhole(body: String) throws {
        let answer = try post(Array(body.utf8), .native)
        #expect(answer.status == 400)
        #expect(answer.json["code"] as? String == "invalid_json")
        #expect(try stored() == [])
    }

    @Test func invalidValuesOutsideTheEventsDoNotRejectThem() throws {
        let native = #"{"context":{"a":1,"a":2},"n":1e400,"batch":[\#(WireShape.native.event("m-1"))]}"#
        #expect(try post(Array(native.utf8), .native).status == 200)
        let braze =
            #"{"device":{"a":[1e400]},"device_id":"d","events":[\#(WireShape.events.event("m-2"))],"time":1e999}"#
        #expect(try post(Array(braze.utf8), .events).status == 201)
        #expect(try stored() == ["m-1", "m-2"])
    }

    @Test func tooManyDamagedEventsAreRejectedAsTooMany() throws {
        let bad = Array(#"{"a":1,"a":2}"#.utf8)
        let answer = try post(WireShape.native.body(Array(repeating: bad, count: 1_001)), .native)
        #expect(answer.status == 413)
        #expect(answer.json["code"] as? String == "batch_too_large")
    }

    /// Transistorsoft's SDK retries a record forever unless the status is 2xx.
    @Test(arguments: [
        #"{"coords":{},"uuid":"a","uuid":"b"}"#, #"{"location":{"coords":{},"uuid":"a","uuid":"b"}}"#,
        #"{"location":[{"coords":{},"uuid":"a","uuid":"b"}]}"#, #"[{"coords":{},"uuid":"a","uuid":"b"}]"#,
        #"{"location":{"coords":{}},"location":{}}"#,
        #"[{"location":{"coords":{}},"a":1,"a":1}]"#, #"{"lat":1,"lat":2}"#,
    ])
    func aDamagedLocationIsRejectedWithAStatusThatEndsRetries(body: String) throws {
        let answer = try post(Array(body.utf8), .locations)
        #expect(answer.status == 200)
        #expect(answer.json["code"] as? String == "all_events_rejected")
        #expect(rejected(answer).map { $0["code"] as? String } == ["invalid_json"])
        #expect(try stored() == [])
    }

    @Test(arguments: ["1e400", #"{"n":1e400}"#, #"{"a":1,"a":2}"#, #"["\x"]"#])
    func aDamagedParameterDoesNotLoseTheLocationsBesideIt(parameter: String) throws {
        let list = [WireShape.locations.event("a"), WireShape.locations.event("b")].joined(separator: ",")
        let answer = try post(Array(#"{"location":[\#(list)],"device":\#(parameter)}"#.utf8), .locations)
        #expect(answer.status == 200)
        #expect(rejected(answer).isEmpty)
        #expect(try stored() == ["a", "b"])
    }

    @Test(arguments: ["1e400", "NaN", "01", "null", "42", #""text""#])
    func aLocationThatIsNotAnObjectIsRejectedAlone(value: String) throws {
        let list = [WireShape.locations.event("a"), value, WireShape.locations.event("b")].joined(
            separator: ",")
        let answer = try post(Array(#"{"location":[\#(list)]}"#.utf8), .locations)
        #expect(answer.status == 200)
        #expect(rejected(answer).map { $0["index"] as? Int } == [1])
        #expect(try stored() == ["a", "b"])
    }

    /// Apps may configure another root property than `location`.
    @Test(arguments: [
        #"{"data":{"uuid":"a","uuid":"b","coords":{"latitude":1}}}"#,
        #"{"data":[{"uuid":"a","n":1e400,"coords":{"latitude":1}}]}"#,
    ])
    func aDamagedLocationUnderAnotherNameIsNotAccepted(body: String) throws {
        let answer = try post(Array(body.utf8), .locations)
        #expect(answer.status == 200)
        #expect(rejected(answer).map { $0["code"] as? String } == ["invalid_json"])
        #expect(try stored() == [])
    }
}

/// Ids and times in the forms that real clients send.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct UnusualEventsTests {
    private let fixture: GatewayFixture
    private let connection: any TestClient

    init() throws {
        fixture = try GatewayFixture(.standard)
        connection = try fixture.client()
    }

    private func enforce(_ enforcement: Enforcement) throws {
        try fixture.edit { try $0.setEnforcement(enforcement, for: fixture.appID) }
    }

    private func stored() throws -> Int { try fixture.rows("message_id").count }

    private func signed(_ user: String) throws -> [String: String] {
        ["X-Write-Key": fixture.writeKey, "Authorization": "Bearer " + (try fixture.token(for: user))]
    }

    @Test func aNumericIDEqualsTheStringOfItsDigits() throws {
        let event = #"{"type":"track","event":"e","userId":42,"messageId":7,"anonymousId":-3}"#
        #expect(connection.post(batch(event), headers: try signed("42"))?.status == 200)
        #expect(
            try fixture.rows("message_id", "user_id", "anonymous_id", "body") == [["7", "42", "-3", event]])
        let group = #"{"type":"group","userId":42,"groupId":9223372036854775807,"messageId":"g"}"#
        let alias = #"{"type":"alias","userId":42,"previousId":42,"messageId":"a"}"#
        #expect(
            connection.post(batch(group, alias), headers: try signed("42"))?.json["accepted"] as? Int == 2)
        #expect(try fixture.rows("name").compactMap(\.[0]) == ["e", "9223372036854775807", "42"])
    }

    @Test(arguments: [
        "0", "-1", "9223372036854775807", "-9223372036854775808", "9223372036854775808",
        "-9223372036854775809",
        "18446744073709551615", "18446744073709551616", "123456789012345678901234567890",
        "-" + String(repeating: "7", count: 308), "1" + String(repeating: "0", count: 307),
    ])
    func anIntegerIDOfAnySizeEqualsTheStringOfItsDigits(number: String) throws {
        // The event has other numbers before the id, and the id's digits in a string.
        let event =
            #"{"context":{"n":[1,2.5,-3,"\#(number)",99999999999999999999]},"type":"track","event":"e","#
            + #""userId":\#(number),"messageId":\#(number)}"#
        let answer = connection.post(batch(trackEvent("x", user: number), event), headers: try signed(number))
        #expect(answer?.json["accepted"] as? Int == 2, "\(answer?.body ?? "")")
        #expect(try fixture.rows("message_id", "user_id", "body").last == [number, number, event])
        let text = #"{"type":"track","event":"e","userId":"\#(number)","messageId":"\#(number)"}"#
        #expect(connection.post(batch(text), headers: try signed(number))?.json["duplicates"] as? Int == 1)
        let foreign = connection.post(batch(event), headers: try signed(number + "1"))
        #expect(foreign?.authErrorCode == 21)
        let customer = #"{"customer_ids":{"registered":\#(number)},"event_type":"e","timestamp":1}"#
        try enforce(.optional)
        #expect(
            connection.post(
                customer, path: "/track/v2/projects/shop/customers/events",
                headers: ["Authorization": "Token \(fixture.writeKey)"])?.status == 200)
        #expect(try fixture.rows("user_id").last == [number])
    }

    @Test func negativeZeroIsTheID0() throws {
        let event = #"{"type":"track","event":"e","userId":-0,"messageId":"m"}"#
        #expect(connection.post(batch(event), headers: try signed("0"))?.json["accepted"] as? Int == 1)
        #expect(try fixture.rows("user_id") == [["0"]])
    }

    @Test(arguments: [
        "42.0", "4.2", "1e3", "-0.0", "18446744073709551616.0", "123456789012345678901e0", "{}",
        String(repeating: "9", count: 309),
    ])
    func fractionsAndExponentsAreNotIDs(number: String) throws {
        let answer = try #require(
            connection.post(
                batch(#"{"type":"track","event":"e","userId":\#(number)}"#), headers: signed("42")))
        #expect(answer.json["code"] as? String == "all_events_rejected")
    }

    /// The control characters U+0080 to U+009F are rejected like U+0000. Invisible characters and characters that
    /// change the direction of text are accepted.
    @Test(arguments: [
        ("\\u0000", false), ("\\u001f", false), ("\\u007f", false), ("\\u0080", false), ("\\u0085", false),
        ("\u{85}", false), ("\u{9B}", false), ("\u{9F}", false), ("\u{A0}", true), ("\u{C0}", true),
        ("\u{2085}", true), ("\u{202E}", true), ("\\u202e", true), ("\u{200D}", true), ("\u{FEFF}", true),
    ])
    func idsWithControlCharactersAreRejected(text: String, isTaken: Bool) throws {
        try enforce(.disabled)
        func expect(_ body: [UInt8], _ shape: WireShape, _ path: String) throws {
            let before = try stored()
            _ = try shape.send(body, to: fixture, connection, at: path)
            #expect(try stored() == before + (isTaken ? 1 : 0), "\(String(decoding: body, as: UTF8.self))")
        }
        for shape in WireShape.all {
            for (name, path) in shape.dialect.ids.flatMap({ name in shape.paths.map { (name, $0) } }) {
                let number = try stored()
                // Only a group event has a group id.
                if name == "groupId", shape.isSingle, !path.hasPrefix("/v1/g") { continue }
                try expect(
                    shape.body(shape.event("m-\(number)", [name: #""a\#(text)\#(number)""#])), shape, path)
            }
        }
        for ids in [#"{"registered":"a\#(text)b"}"#, #"{"a\#(text)b":"u"}"#] {
            let shape = WireShape.tracked
            try expect(
                shape.body(shape.event("m-\(try stored())", ["customer_ids": ids])), shape, shape.paths[0])
        }
    }

    @Test func numericUserIDsAreAcceptedInBrazeAndBloomreachRequests() throws {
        try enforce(.optional)
        let braze = #"{"device_id":1,"events":[{"name":"e","user_id":42,"message_id":5}]}"#
        let headers = [
            "X-Braze-Api-Key": fixture.writeKey, "X-Braze-Auth-Signature": try fixture.token(for: "42"),
        ]
        let answer = try #require(connection.post(braze, path: "/api/v3/data", headers: headers))
        #expect(answer.status == 201)
        #expect(answer.json["auth_warning"] == nil)
        let customer = #"{"customer_ids":{"registered":42,"cookie":7},"event_type":"e","timestamp":1}"#
        #expect(
            connection.post(
                customer, path: "/track/v2/projects/shop/customers/events",
                headers: ["Authorization": "Token \(fixture.writeKey)"])?.status == 200)
        #expect(try fixture.rows("user_id", "anonymous_id") == [["42", "1"], ["42", "7"]])
    }

    static let times: [(String, Int64?)] = [
        (#""2026-11-21T08:30:00.250Z""#, 1_795_249_800_250),
        (#""2026-11-21T14:00:00.250+0530""#, 1_795_249_800_250),
        (#""2026-11-21 08:30:00.250Z""#, 1_795_249_800_250), (#""2026-11-21T08:30Z""#, 1_795_249_800_000),
        (#""2026-11-21 09:30:00,25 +01""#, 1_795_249_800_250),
        (#""2026-11-21T03:30:00-05:00""#, 1_795_249_800_000),
        ("1795249800", 1_795_249_800_000), ("1795249800.25", 1_795_249_800_250),
        ("1795249800250", 1_795_249_800_250), (#""1795249800""#, 1_795_249_800_000),
        (#""1795249800250""#, 1_795_249_800_250), ("null", nil),
    ]

    @Test func unambiguousTimestampsAreRead() throws {
        for (number, (time, milliseconds)) in Self.times.enumerated() {
            let answer = try #require(
                connection.post(
                    batch(trackEvent("m-\(number)", extra: #","timestamp":\#(time)"#)),
                    headers: signed("user-1")))
            #expect(answer.json["accepted"] as? Int == 1)
            #expect(answer.json["warnings"] == nil, "\(time)")
            if let milliseconds {
                #expect(try fixture.rows("timestamp_ms").last == ["\(milliseconds)"], "\(time)")
            }
        }
    }

    static let noTimes = [
        #""yesterday""#, #""2026-11-21T08:30:00""#, #""2026-11-21""#, #""20261121083000""#,
        #""202611210830""#,
        #""2026-02-30T08:30:00Z""#, #""2026-11-21T08:30:00+25:00""#, #""0000-01-01T00:00:00+01:00""#,
        #""9999-12-31T23:59:59-01:00""#, #""""#, "true", "{}", "[1]", "5", "-1", "1e300", "1795249800250000",
        "20261121083000",
    ]

    @Test func anEventWhoseTimeCannotBeReadHasTheTimeOfReceipt() throws {
        for (number, time) in Self.noTimes.enumerated() {
            let before = Int64(Date().timeIntervalSince1970 * 1_000) - 1_000
            let answer = try #require(
                connection.post(
                    batch(
                        trackEvent("a-\(number)"), trackEvent("b-\(number)", extra: #","timestamp":\#(time)"#)
                    ),
                    headers: signed("user-1")))
            #expect(answer.json["accepted"] as? Int == 2)
            let warnings = try #require(answer.json["warnings"] as? [[String: Any]])
            #expect(warnings.map { $0["index"] as? Int } == [1])
            #expect(warnings.map { $0["code"] as? String } == ["time_replaced"], "\(time)")
            let stored = try #require(try fixture.rows("timestamp_ms").last?[0].flatMap(Int64.init))
            #expect(stored >= before, "\(time)")
        }
    }

    @Test(arguments: WireShape.all)
    func aTimeThatCannotBeReadIsReplacedInEveryDialect(shape: WireShape) throws {
        try enforce(.disabled)
        for (number, path) in shape.paths.enumerated() {
            let event = shape.event("m-\(number)", [shape.dialect.time: #""soon""#])
            let answer = try shape.send(shape.body(event), to: fixture, connection, at: path)
            let warnings = answer.json["warnings"] as? [[String: Any]]
            #expect(warnings?.map { $0["code"] as? String } == ["time_replaced"], "\(path)")
        }
        #expect(try stored() == shape.paths.count)
    }

    @Test func timesInSecondsMillisecondsAndISO8601AreRead() throws {
        try enforce(.disabled)
        for shape in [WireShape.events, .tracked] {
            for (number, time) in ["1795249800.25", "1795249800250", #""2026-11-21T08:30:00.250Z""#]
                .enumerated()
            {
                let event = shape.event("\(shape.testDescription) \(number)", [shape.dialect.time: time])
                _ = try shape.send(shape.body(event), to: fixture, connection)
                #expect(try fixture.rows("timestamp_ms").last == ["1795249800250"])
            }
        }
    }

    /// In an id, an unpaired surrogate is rejected, because its replacement could make two ids equal.
    @Test func bloomreachStoresHalfASurrogatePairOutsideOfIDs() throws {
        try enforce(.disabled)
        let shape = WireShape.tracked
        func post(_ members: KeyValuePairs<String, String>) throws -> Int {
            try shape.send(shape.body(shape.event("m", members)), to: fixture, connection).status
        }
        #expect(try post(["properties": #"{"t":"\ud83d"}"#]) == 200)
        #expect(try fixture.rows("body").last?[0]?.contains(#"{"t":"\ufffd"}"#) == true)
        for ids in [#"{"cookie":"c\ud83d"}"#, #"{"c\ud83d":"c"}"#] {
            #expect(try post(["customer_ids": ids]) == 400)
        }
        #expect(try post(["message_id": #""\ud83d""#]) == 400)
        #expect(try stored() == 1)
    }
}
