import Foundation
import Testing

@testable import CountersignCLI

struct QuantityTests {
    @Test(arguments: [
        ("90", Quantity.Time.seconds, 90), ("90s", .seconds, 90), ("10m", .seconds, 600),
        ("2h", .seconds, 7_200),
        ("7d", .seconds, 604_800), ("24", .hours, 24), ("7d", .hours, 168), ("2w", .days, 14),
        ("48h", .days, 2),
    ])
    func timesHaveUnits(text: String, unit: Quantity.Time, value: Int) {
        #expect(Quantity.duration(text, in: unit) == value)
    }

    @Test(arguments: [
        ("", Quantity.Time.seconds), ("h", .seconds), ("1.5h", .seconds), ("-1", .seconds), ("1y", .seconds),
        ("90m", .hours), ("12h", .days), ("99999999999999999999", .seconds),
        ("9223372036854775807w", .seconds),
    ])
    func invalidTimesAreRejected(text: String, unit: Quantity.Time) {
        #expect(Quantity.duration(text, in: unit) == nil)
    }

    @Test(arguments: [
        (Int64(0), "0s"), (30, "30s"), (90, "90s"), (600, "10m"), (5_400, "90m"), (3_600, "1h"),
        (129_600, "36h"), (2_592_000, "30d"),
    ])
    func shownDurationsCanBeTyped(seconds: Int64, text: String) {
        #expect(Quantity.text(seconds: seconds) == text)
        #expect(Quantity.duration(text, in: .seconds) == Int(seconds))
    }

    @Test(arguments: [(Int64(59), "59 s"), (119, "1 min"), (3_720, "1 h 2 min"), (90_000, "1 d 1 h")])
    func approximateDurationsShowTheTwoLargestUnits(seconds: Int64, text: String) {
        #expect(Quantity.about(seconds: seconds) == text)
    }

    @Test(arguments: [
        ("1000", 1_000), ("10GB", 10_000_000_000), ("10gb", 10_000_000_000), ("64KiB", 65_536),
        ("1GiB", 1 << 30),
        ("5B", 5),
    ])
    func sizesHaveUnits(text: String, value: Int) {
        #expect(Quantity.size(text) == value)
    }

    @Test(arguments: [
        (Int64(0), "0B"), (1_001, "1001B"), (10_000_000_000, "10GB"), (1_500_000_000, "1500MB"),
        (65_536, "64KiB"), (5 << 30, "5GiB"),
    ])
    func sizesAreShownAsTheyAreTyped(bytes: Int64, text: String) {
        #expect(Quantity.text(bytes: bytes) == text)
        #expect(Quantity.size(text) == Int(bytes))
    }

    @Test(arguments: ["", "GB", "10G", "1.5GB", "9223372036854775807TB"])
    func invalidSizesAreRejected(text: String) {
        #expect(Quantity.size(text) == nil)
    }

    @Test func settingsAcceptValuesWithUnits() async {
        let recorded = RecordedIO(environment: ["COUNTERSIGN_BODY_BYTES": "1MiB", "HOME": "/nowhere"])
        #expect(await recorded.run("config", "print", "--idle-seconds", "2m", "--json") == .done)
        #expect(recorded.output.contains(#"{"name":"body-bytes","value":"1048576"}"#))
        #expect(recorded.output.contains(#"{"name":"idle-seconds","value":"120"}"#))
    }
}
