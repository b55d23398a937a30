internal import CountersignCore
internal import Foundation

/// The combined log format: `host ident user [time] "request" status bytes "referer" "agent"`.
enum AccessLog {
    static func read(_ data: Data, named name: String) -> Replay {
        var replay = Replay(source: "access log \(name)", events: [])
        let lines = data.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        for (index, line) in lines.enumerated() {
            let line = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
            guard !line.isEmpty else { continue }
            do throws(LineProblem) {
                guard let text = String(validating: line, as: UTF8.self) else {
                    throw LineProblem(reason: "it is not UTF-8")
                }
                replay.events.append(try event(text))
                replay.lines.append(index + 1)
            } catch {
                replay.problems.append(Replay.Problem(line: index + 1, reason: error.reason))
            }
        }
        return replay
    }

    struct LineProblem: Error, Equatable {
        let reason: String
    }

    /// Parses a line. The last field may be truncated, without its closing quote.
    static func event(_ line: String) throws(LineProblem) -> ReplayEvent {
        var reader = Reader(rest: Array(line.utf8)[...])
        let address = try reader.word("the client address")
        _ = try reader.word("the identity")
        let account = try reader.word("the user name")
        let time = try milliseconds(reader.bracketed("the time"))
        let request = try reader.quoted("the request")
        let status = try reader.word("the status")
        let size = try reader.word("the size")
        let referrer = try reader.quoted("the referer")
        let agent = try reader.quoted("the user agent", mayBeCut: true)
        guard reader.rest.allSatisfy({ $0 == UInt8(ascii: " ") }) else {
            throw LineProblem(reason: "something follows the user agent")
        }
        guard let status = Int64(status), (100...599).contains(status) else {
            throw LineProblem(reason: "the status is not a number from 100 to 599")
        }
        guard let size = size == "-" ? 0 : Int64(size), size >= 0 else {
            throw LineProblem(reason: "the size is neither a number nor -")
        }
        guard !address.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }), address.utf8.count <= 255 else {
            throw LineProblem(reason: "the client address has control characters or over 255 bytes")
        }
        var properties: JSONObject = [
            "time": .string(RFC3339.text(milliseconds: time)), "status": .integer(status),
            "bytes": .integer(size),
        ]
        let parts = request.split(separator: " ")
        if parts.count == 3, parts[2].hasPrefix("HTTP/") {
            properties["method"] = .string(String(parts[0]))
            properties["path"] = .string(String(parts[1]))
        } else if request != "-" {
            properties["request"] = .string(request)
        }
        for (name, value) in [("referrer", referrer), ("user_agent", agent), ("account", account)]
        where value != "-" {
            properties[name] = .string(value)
        }
        return ReplayEvent(userID: address, kind: .page, name: "Page Viewed", properties: properties)
    }

    /// `17/May/2015:10:05:03 +0000`.
    private static func milliseconds(_ text: String) throws(LineProblem) -> Int64 {
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        let bytes = Array(text.utf8)
        func part(_ range: Range<Int>) -> String { String(decoding: bytes[range], as: UTF8.self) }
        guard bytes.count == 26, let month = months.firstIndex(of: part(3..<6)),
            part(2..<3) + part(6..<7) + part(11..<12) + part(20..<21) == "//: "
        else { throw LineProblem(reason: "the time is not like 17/May/2015:10:05:03 +0000") }
        let monthNumber = month < 9 ? "0\(month + 1)" : "\(month + 1)"
        let standard =
            "\(part(7..<11))-\(monthNumber)-\(part(0..<2))T\(part(12..<20))\(part(21..<24)):\(part(24..<26))"
        guard let milliseconds = RFC3339.milliseconds(standard) else {
            throw LineProblem(reason: "the time is not like 17/May/2015:10:05:03 +0000")
        }
        return milliseconds
    }

    private struct Reader {
        var rest: ArraySlice<UInt8>

        mutating func word(_ what: String) throws(LineProblem) -> String {
            skipSpaces()
            let word = rest.prefix { $0 != UInt8(ascii: " ") }
            guard !word.isEmpty else { throw LineProblem(reason: "\(what) is missing") }
            rest = rest[word.endIndex...]
            return String(decoding: word, as: UTF8.self)
        }

        mutating func bracketed(_ what: String) throws(LineProblem) -> String {
            skipSpaces()
            guard rest.first == UInt8(ascii: "["), let end = rest.firstIndex(of: UInt8(ascii: "]")) else {
                throw LineProblem(reason: "\(what) is not in [ ]")
            }
            defer { rest = rest[(end + 1)...] }
            return String(decoding: rest[(rest.startIndex + 1)..<end], as: UTF8.self)
        }

        /// Reads a quoted field, in which `\"` is a quote and `\\` a backslash.
        mutating func quoted(_ what: String, mayBeCut: Bool = false) throws(LineProblem) -> String {
            skipSpaces()
            guard rest.popFirst() == UInt8(ascii: "\"") else {
                throw LineProblem(reason: "\(what) is not in quotes")
            }
            var bytes: [UInt8] = []
            while let byte = rest.popFirst() {
                if byte == UInt8(ascii: "\"") { return String(decoding: bytes, as: UTF8.self) }
                if byte == UInt8(ascii: "\\"), let next = rest.first,
                    next == UInt8(ascii: "\"") || next == UInt8(ascii: "\\")
                {
                    bytes.append(next)
                    rest = rest.dropFirst()
                } else {
                    bytes.append(byte)
                }
            }
            guard mayBeCut else { throw LineProblem(reason: "\(what) has no closing quote") }
            return String(decoding: bytes, as: UTF8.self)
        }

        private mutating func skipSpaces() {
            rest = rest.drop { $0 == UInt8(ascii: " ") }
        }
    }
}
