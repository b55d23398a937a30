internal import CountersignCore
internal import GatewayModel

/// A log line as JSON. It is pure ASCII, so that client data cannot contain control sequences for a terminal.
struct LogLine {
    private(set) var bytes: [UInt8]

    init(milliseconds: Int64, level: LogLevel, message: StaticString) {
        bytes = []
        bytes.reserveCapacity(512)
        bytes.append(contentsOf: #"{"time":""#.utf8)
        RFC3339.write(milliseconds: milliseconds, to: &bytes)
        bytes.append(UInt8(ascii: "\""))
        put("level", level.rawValue)
        key("message")
        bytes.append(UInt8(ascii: "\""))
        message.withUTF8Buffer { bytes.append(contentsOf: $0) }
        bytes.append(UInt8(ascii: "\""))
    }

    init(_ record: RequestRecord, level: LogLevel) {
        self.init(milliseconds: record.receivedMilliseconds, level: level, message: "request")
        put("request_id", record.id)
        put("trace_id", record.trace?.traceID)
        put("method", record.method, limit: 32)
        put("route", record.context.route)
        if record.context.route == nil { put("path", record.path, limit: 128) }
        put("status", record.status)
        put("client", record.clientAddress)
        put("app", record.context.appID)
        put("enforcement", record.context.enforcement?.rawValue)
        put("verdict", record.context.verdict?.rawValue)
        put("code", record.code ?? record.context.authCode?.reason)
        if record.context.accepted + record.context.duplicates + record.context.rejected > 0 {
            put("accepted", record.context.accepted)
            put("duplicates", record.context.duplicates)
            put("rejected", record.context.rejected)
        }
        put("bytes_in", record.bytesIn)
        put("bytes_out", record.bytesOut)
        key("duration_ms")
        let microseconds = max(0, Int((record.seconds * 1_000_000).rounded()))
        bytes.append(decimal: Int64(microseconds / 1000))
        bytes.append(UInt8(ascii: "."))
        for divisor in [100, 10, 1] {
            bytes.append(UInt8(ascii: "0") + UInt8(microseconds / divisor % 10))
        }
    }

    consuming func ended() -> [UInt8] {
        bytes.append(UInt8(ascii: "}"))
        bytes.append(0x0A)
        return bytes
    }

    mutating func put(_ name: StaticString, _ text: String?, limit: Int = 512) {
        guard var text else { return }
        key(name)
        bytes.append(UInt8(ascii: "\""))
        defer { bytes.append(UInt8(ascii: "\"")) }
        // Most text needs no escapes.
        let isPlain = text.withUTF8 { utf8 in
            guard utf8.count <= limit,
                utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F && $0 != 0x22 && $0 != 0x5C })
            else { return false }
            bytes.append(contentsOf: utf8)
            return true
        }
        if isPlain { return }
        for unit in text.utf16.prefix(limit) {
            switch unit {
            case 0x22, 0x5C: bytes.append(contentsOf: [0x5C, UInt8(unit)])
            case 0x20..<0x7F: bytes.append(UInt8(unit))
            default:
                bytes.append(contentsOf: "\\u".utf8)
                for shift in [12, 8, 4, 0] {
                    let digit = UInt8((unit >> UInt16(shift)) & 0xF)
                    bytes.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
                }
            }
        }
    }

    mutating func put(_ name: StaticString, _ number: Int?) {
        guard let number else { return }
        key(name)
        bytes.append(decimal: Int64(number))
    }

    private mutating func key(_ name: StaticString) {
        bytes.append(UInt8(ascii: ","))
        bytes.append(UInt8(ascii: "\""))
        name.withUTF8Buffer { bytes.append(contentsOf: $0) }
        bytes.append(UInt8(ascii: "\""))
        bytes.append(UInt8(ascii: ":"))
    }
}
