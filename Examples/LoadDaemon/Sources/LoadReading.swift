import Countersign
import Foundation

/// The current load of this machine.
struct LoadReading {
    var oneMinute: Double
    var fiveMinutes: Double
    /// The available memory in bytes, or nil if the system does not report it.
    var availableBytes: Int64?

    /// Reads the load from `/proc`, or returns nil on systems without it.
    static func now() -> LoadReading? {
        guard let text = try? String(contentsOfFile: "/proc/loadavg", encoding: .utf8) else { return nil }
        let numbers = text.split(separator: " ").prefix(2).compactMap { Double($0) }
        guard numbers.count == 2 else { return nil }
        return LoadReading(oneMinute: numbers[0], fiveMinutes: numbers[1], availableBytes: availableBytes())
    }

    private static func availableBytes() -> Int64? {
        let text = try? String(contentsOfFile: "/proc/meminfo", encoding: .utf8)
        let line = text?.split(separator: "\n").first { $0.hasPrefix("MemAvailable:") }
        return line?.split(separator: " ").compactMap { Int64($0) }.first.map { $0 * 1024 }
    }

    /// The properties of an event. Their names contain the units.
    var properties: JSONObject {
        var properties: JSONObject = [
            "load_1m": .number(oneMinute), "load_5m": .number(fiveMinutes),
        ]
        if let availableBytes { properties["memory_available_bytes"] = .integer(availableBytes) }
        return properties
    }
}
