import Testing

@testable import CountersignJSON

struct StrictJSONTests {
    private func parse<Result>(_ text: String, depth: Int = 64, _ body: (JSONNode) throws -> Result) throws
        -> Result
    {
        try StrictJSONParser(maximumBytes: 1 << 20, maximumDepth: depth).parse(bytes: Array(text.utf8), body)
    }

    @Test(arguments: [
        ("", StrictJSONError.empty), (" \n", .empty), ("{", .syntax), ("{}x", .syntax), ("[1,]", .syntax),
        ("{'a':1}", .syntax), ("[01]", .numberOutOfRange), ("[1e400]", .numberOutOfRange),
        ("\u{FEFF}{}", .notUTF8),
        (#"{"a":1,"a":2}"#, .duplicateMember), (#"{"a":1,"\u0061":2}"#, .duplicateMember),
        (#"[{"x":{"b":1,"c":2,"b":3}}]"#, .duplicateMember),
        (
            #"{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"j":0,"k":1,"l":2,"m":3,"a":4}"#,
            .duplicateMember
        ),
    ])
    func invalidJSONIsRejected(text: String, expected: StrictJSONError) {
        #expect(throws: expected) { try parse(text) { _ in } }
    }

    /// Repairing a lone surrogate would change the string, and so possibly the user.
    @Test(arguments: [#""\udc00""#, #""\ud800""#, #""\ud800x""#, #""\ud800\u0041""#, #"{"\udfff":1}"#])
    func halfASurrogatePairIsRejected(text: String) throws {
        #expect(throws: StrictJSONError.self) { try parse(text) { _ in } }
        try parse(#""\ud83d\ude00""#) { #expect($0.string == "\u{1F600}") }
    }

    /// RFC 8259, section 6, sets no limit; simdjson stops at 64 bits.
    @Test func longIntegersAreDoubles() throws {
        let long = "123456789012345678901234567890"
        try parse(
            #"{"\#(long)":["\#(long)",\#(long),-\#(long) , 9223372036854775807,18446744073709551616,-9223372036854775809,1.5]}"#
        ) { root in
            let values = Array(root["123456789012345678901234567890"]?.elements ?? root.elements)
            #expect(values.first?.string == long)
            #expect(
                values.map(\.double) == [
                    nil, 1.2345678901234568e29, -1.2345678901234568e29, 9_223_372_036_854_775_808,
                    18_446_744_073_709_551_616, -9_223_372_036_854_775_808, 1.5,
                ])
            #expect(values.map(\.int64) == [nil, nil, nil, .max, nil, nil, nil])
        }
        #expect(throws: StrictJSONError.numberOutOfRange) { try parse("[\(long),01]") { _ in } }
        #expect(throws: StrictJSONError.numberOutOfRange) { try parse("[\(long),1e400]") { _ in } }
    }

    @Test func nestingBeyondTheMaximumDepthIsRejected() throws {
        try parse("[[[1]]]", depth: 3) { #expect($0.kind == .array) }
        #expect(throws: StrictJSONError.tooDeep) { try parse("[[[[1]]]]", depth: 3) { _ in } }
    }

    @Test func invalidUTF8IsRejected() {
        #expect(throws: StrictJSONError.notUTF8) {
            try StrictJSONParser(maximumBytes: 100).parse(bytes: [0x22, 0xFF, 0x22]) { _ in }
        }
    }

    @Test func valuesAreRead() throws {
        try parse(
            #" {"s":"é\u0000","t":true,"n":null,"i":-5,"u":18446744073709551615,"d":1.5,"a":[1,{"b":2},3],"z":0}"#
        ) {
            root in
            #expect(root["s"]?.string == "é\0")
            #expect(root["t"]?.bool == true)
            #expect(root["n"]?.isNull == true)
            #expect(root["i"]?.int64 == -5)
            #expect(root["u"]?.int64 == nil)
            #expect(root["u"]?.double == 18_446_744_073_709_551_616)
            #expect(root["d"]?.double == 1.5)
            #expect(root["a"]?.elements.map(\.kind) == [.number, .object, .number])
            #expect(root["z"]?.double == 0)
            #expect(root["b"] == nil)
            #expect(
                root.members.map { String(decoding: $0.name, as: UTF8.self) } == [
                    "s", "t", "n", "i", "u", "d", "a", "z",
                ])
        }
    }

    @Test func onlyAnArrayHasElementsAndOnlyAnObjectMembers() throws {
        try parse(#"["é",true,null,-5,1.5,[1],{"b":2},0]"#) { root in
            #expect(root.elements.map { $0.elements.map(\.kind) } == [[], [], [], [], [], [.number], [], []])
            #expect(
                root.elements.map { $0.members.map(\.value.kind) } == [[], [], [], [], [], [], [.number], []])
        }
    }

    @Test func wordsAreASCIIStringsOfAtMost64Bytes() throws {
        let longest = String(repeating: "w", count: 64)
        try parse(#"["","RSA","\#(longest)","\#(longest)w","é",7]"#) {
            #expect($0.elements.map(\.word) == ["", "RSA", longest, nil, nil, nil])
        }
    }

    @Test func childSpansAreTheBytesOfMembersAndElements() throws {
        let text = #"  {"x" : "a,}\"" , "batch":[ {"a":[1,2]} ,"]", 3.5e1,null ] , "y":{}}"#
        let bytes = Array(text.utf8)
        try bytes.withUnsafeBytes { raw in
            let members = StrictJSONParser.childSpans(
                of: raw, at: StrictJSONParser.rootOffset(of: raw), count: 3)
            #expect(
                members.map { String(decoding: bytes[$0], as: UTF8.self) }
                    == [#""a,}\"""#, #"[ {"a":[1,2]} ,"]", 3.5e1,null ]"#, "{}"])
            let elements = StrictJSONParser.childSpans(of: raw, at: members[1].lowerBound, count: 4)
            #expect(
                elements.map { String(decoding: bytes[$0], as: UTF8.self) }
                    == [#"{"a":[1,2]}"#, #""]""#, "3.5e1", "null"])
            #expect(StrictJSONParser.childStart(of: raw, at: 2, index: 1) == members[1].lowerBound)
            #expect(StrictJSONParser.childStart(of: raw, at: 2, index: 3) == raw.count)
            #expect(StrictJSONParser.childSpans(of: raw, at: members[2].lowerBound, count: 0).isEmpty)
            try StrictJSONParser(maximumBytes: 1000).parse(raw) {
                #expect($0["batch"]?.elements.map(\.kind).count == 4)
            }
        }
    }

    @Test func escapedQuotesDoNotEndAString() {
        let values = [#""\\""#, #""\\\"]""#, #""\\\\""#, #""\"\"""#, #""""#]
        let bytes = Array("[\(values.joined(separator: ","))]".utf8)
        bytes.withUnsafeBytes { raw in
            let spans = StrictJSONParser.childSpans(of: raw, at: 0, count: values.count)
            #expect(spans.map { String(decoding: bytes[$0], as: UTF8.self) } == values)
        }
    }
}
