internal import CountersignCore
internal import Foundation
internal import GatewayModel

/// A log line for a terminal: local time, outcome and request. It is pure ASCII, like ``LogLine``.
struct TerminalLogLine {
    let isColored: Bool
    /// The offset of local time from UTC, in seconds.
    var secondsFromUTC = TimeZone.current.secondsFromGMT()

    /// A request's line, such as `14:03:07  401 EXPIRED  POST /v1/batch  shop  0.8 ms`.
    func request(_ record: RequestRecord, level: LogLevel) -> [UInt8] {
        let context = record.context
        let outcome = [record.status.map { String($0) } ?? "closed", record.code ?? context.authCode?.reason]
            .compactMap(\.self).joined(separator: " ")
        let request =
            Self.safe(record.method, limit: 8) + " " + Self.safe(context.route ?? record.path, limit: 64)
        var text = padded(clock(record.receivedMilliseconds), 8) + "  "
        text += colored(padded(Self.safe(outcome, limit: 64), 22), level) + "  " + padded(request, 30)
        if let app = context.appID { text += "  " + Self.safe(app, limit: 64) }
        if context.accepted + context.duplicates + context.rejected > 0 {
            text += "  stored \(context.accepted)"
            if context.duplicates > 0 { text += ", duplicates \(context.duplicates)" }
            if context.rejected > 0 { text += ", rejected \(context.rejected)" }
        }
        let tenths = Int((record.seconds * 10_000).rounded())
        return Array((text + "  \(tenths / 10).\(tenths % 10) ms\n").utf8)
    }

    func note(
        _ milliseconds: Int64, _ level: LogLevel, _ message: StaticString, _ values: [(StaticString, String)]
    ) -> [UInt8] {
        var text = padded(clock(milliseconds), 8) + "  " + colored(padded(level.rawValue, 22), level)
        text += "  \(message)"
        for (name, value) in values { text += "  \(name): " + Self.safe(value, limit: 512) }
        return Array((text + "\n").utf8)
    }

    private func clock(_ milliseconds: Int64) -> String {
        let day: Int64 = 86_400
        let seconds = (milliseconds / 1000 + Int64(secondsFromUTC)) % day
        let ofDay = seconds < 0 ? seconds + day : seconds
        return [ofDay / 3600, ofDay / 60 % 60, ofDay % 60].map { $0 < 10 ? "0\($0)" : "\($0)" }
            .joined(separator: ":")
    }

    private func colored(_ text: String, _ level: LogLevel) -> String {
        let code =
            switch level {
            case .error: 31
            case .warning: 33
            case .info: 32
            case .debug, .off: 2
            }
        return isColored ? "\u{1B}[\(code)m\(text)\u{1B}[0m" : text
    }

    private func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.utf8.count))
    }

    /// Replaces all but printable ASCII characters, so that client data cannot contain control sequences.
    private static func safe(_ text: String, limit: Int) -> String {
        String(
            String.UnicodeScalarView(
                text.unicodeScalars.prefix(limit).map { (0x20..<0x7F).contains($0.value) ? $0 : "?" }))
    }
}
