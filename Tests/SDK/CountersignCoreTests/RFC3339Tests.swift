import Foundation
import Testing

@testable import CountersignCore

struct RFC3339Tests {
    // Examples of RFC 3339, section 5.8, forms that SDKs send, and limits.
    @Test(arguments: [
        ("1985-04-12T23:20:50.52Z", 482_196_050_520), ("1996-12-19T16:39:57-08:00", 851_042_397_000),
        ("1990-12-31T23:59:60Z", 662_688_000_000), ("1937-01-01T12:00:27.87+00:20", -1_041_337_172_130),
        ("2026-11-21T01:02:03.123456+00:00", 1_795_222_923_123), ("1970-01-01T00:00:00Z", 0),
        ("2024-02-29T00:00:00.5Z", 1_709_164_800_500), ("0000-03-01T00:00:00Z", -62_162_035_200_000),
    ])
    func timestampsAreRead(text: String, expected: Int64) {
        #expect(RFC3339.milliseconds(text) == expected)
    }

    @Test(arguments: [
        "", "2026-11-21", "2026-11-21T01:02:03", "2026-13-01T00:00:00Z", "2025-02-29T00:00:00Z",
        "2026-11-21T24:00:00Z", "2026-11-21T01:02:03.Z", "2026-11-21T01:02:03Zx", "2026-11-21T01:02:03+1:00",
        "2026-11-21T01:02Z", "2026-11-21T01:02:03+0100", "2026-11-21T01:02:03+01", "2026-11-21T01:02:03,5Z",
        "2026-11-21T01:02:03 Z", "2026-11-21T01:02:03+24:00", "2026-11-21T01:02:03-01:60",
        "20261121T010203Z", "٢026-11-21T01:02:03Z", "-026-11-21T01:02:03Z", "0000-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-00:01",
    ])
    func invalidTimestampsAreNotRead(text: String) {
        #expect(RFC3339.milliseconds(text) == nil)
    }

    @Test(
        arguments: [
            ("2026-11-21T01:02:03+0100", 1_795_219_323_000), ("2026-11-21T01:02:03-01", 1_795_226_523_000),
            ("2026-11-21T01:02Z", 1_795_222_920_000), ("2026-11-21T01:02:03,5Z", 1_795_222_923_500),
            ("2026-11-21 01:02:03 +01:30", 1_795_217_523_000), ("2026-11-21T01:02:03Z", 1_795_222_923_000),
            ("2026-11-21T01:02:03", nil), ("2026-11-21T01:02", nil), ("2026-11-21T01:02:03+2400", nil),
            ("2026-11-21T01:02:03+0160", nil), ("2026-11-21T01:02:03+010", nil), ("2026-02-30T01:02Z", nil),
            ("2026-11-21T01:02:03,Z", nil), ("2026-11-21T01:02:03+", nil), ("2026-11-21T01Z", nil),
        ] as [(String, Int64?)])
    func lenientParsingReadsISO8601FormsWithAnOffset(text: String, expected: Int64?) {
        #expect(RFC3339.milliseconds(text, isLenient: true) == expected)
    }

    /// The page after the text is not readable, so reading one byte too many crashes the test.
    @Test func parsingATimestampReadsNoByteAfterIt() throws {
        let page = Int(sysconf(Int32(_SC_PAGESIZE)))
        let memory = try #require(
            mmap(nil, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0))
        try #require(memory != MAP_FAILED)
        defer { munmap(memory, 2 * page) }
        try #require(mprotect(memory + page, page, PROT_NONE) == 0)
        for text in ["2026-11-21T01:02:03.25+01:30", "2026-11-21T01:02:03Z"] {
            let bytes = Array(text.utf8)
            for count in 0...bytes.count {
                let place = UnsafeMutableRawBufferPointer(start: memory + page - count, count: count)
                place.copyBytes(from: bytes[..<count])
                #expect(
                    (RFC3339.milliseconds(UnsafeBufferPointer(place.bindMemory(to: UInt8.self))) != nil)
                        == (count == bytes.count))
            }
        }
    }

    @Test func writtenTimesAreReadBackAndEqualFoundationsText() {
        #expect(RFC3339.text(milliseconds: .min) == "0000-01-01T00:00:00.000Z")
        let formatter = ISO8601DateFormatter()
        formatter.formatOptions = [.withInternetDateTime, .withFractionalSeconds]
        // Foundation changes to the Julian calendar before 1582.
        for milliseconds in stride(
            from: Int64(-12_000_000_000_000), through: 253_402_300_799_999, by: 132_701_150_401)
        {
            let text = RFC3339.text(milliseconds: milliseconds)
            #expect(RFC3339.milliseconds(text) == milliseconds)
            #expect(
                text.dropLast(5)
                    == formatter.string(
                        from: Date(
                            timeIntervalSince1970: Double(
                                milliseconds / 1000 - (milliseconds % 1000 < 0 ? 1 : 0)))
                    ).dropLast(5))
        }
    }
}
