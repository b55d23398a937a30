internal import CountersignCore
internal import CountersignCrypto
internal import CountersignJSON
internal import Foundation

struct SendEvent: Sendable {
    /// The line in the input, from 1.
    let line: Int
    let userID: String?
    let message: JSONValue
}

struct SendInput: Sendable {
    enum Format: String, Sendable, CaseIterable {
        case ndjson, csv, log, gpx
    }

    private(set) var events: [SendEvent] = []
    private(set) var problems: [Replay.Problem] = []

    /// Whether neither a flag, the name nor the first byte determines the format. It is then read as an access log.
    let isGuess: Bool

    /// The file name, or a random text for a pipe. Message ids derive from it.
    private let source: String

    /// Message ids derive from the name, the line and its text, so that a file sent twice is stored once. An
    /// NDJSON line or a CSV column `message_id` can override them. Pipes get new ids each time.
    init(
        _ bytes: [UInt8], named name: String, isPipe: Bool = false, format: Format?,
        run: String = UUIDv7.make()
    ) {
        source = name == "-" || isPipe ? "-\n\(run)" : URL(fileURLWithPath: name).lastPathComponent
        let bytes = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? Array(bytes.dropFirst(3)) : bytes
        let known = format ?? Self.format(of: bytes, named: name)
        isGuess = known == nil
        switch known ?? .log {
        case .ndjson: readMessages(bytes)
        case .csv: readTable(bytes)
        case .log: take(AccessLog.read(Data(bytes), named: name))
        case .gpx: readTrack(bytes, name)
        }
    }

    private mutating func readMessages(_ bytes: [UInt8]) {
        for (line, text) in Self.lines(bytes) {
            do throws(AccessLog.LineProblem) {
                events.append(try message(text, line: line))
            } catch {
                problems.append(Replay.Problem(line: line, reason: error.reason))
            }
        }
    }

    private mutating func readTable(_ bytes: [UInt8]) {
        let table = CSVReader.rows(bytes)
        guard let header = table.first else { return }
        if let problem = header.problem ?? Self.problem(of: header) { return problems.append(problem) }
        for row in table.dropFirst() {
            if let problem = row.problem {
                problems.append(problem)
                continue
            }
            do throws(AccessLog.LineProblem) {
                events.append(try event(row, header.fields))
            } catch {
                problems.append(Replay.Problem(line: row.line, reason: error.reason))
            }
        }
    }

    /// The member of the message that a column sets; nil for a property.
    private static func member(ofColumn column: String) -> String? {
        switch column {
        case "type", "timestamp": column
        case "event", "name": "event"
        case "user_id", "userId": "userId"
        case "anonymous_id", "anonymousId": "anonymousId"
        case "message_id", "messageId": "messageId"
        default: nil
        }
    }

    /// The problem of a header with other separators, or with two columns for the same value, because only the
    /// last would be sent. Columns without a name have no values.
    private static func problem(of header: CSVReader.Row) -> Replay.Problem? {
        let hasOtherSeparators = header.fields.contains { field in
            [";", "\t", "|"].contains { field.contains($0) }
        }
        if hasOtherSeparators, !header.fields.contains(where: { member(ofColumn: $0) != nil }) {
            return Replay.Problem(
                line: header.line, reason: "columns must be separated by commas; nothing is read")
        }
        var columns = BytewiseDictionary<String>()
        for column in header.fields where !column.isEmpty {
            let key = member(ofColumn: column) ?? "property \(column)"
            guard let first = columns.updateValue(column, forKey: key) else { continue }
            let reason =
                first == column
                ? "the column \(column) appears twice"
                : "the columns \(first) and \(column) mean the same"
            return Replay.Problem(
                line: header.line, reason: reason + "; rename or remove one, nothing is read")
        }
        return nil
    }

    /// Stops at invalid bytes, where the XML parser would continue.
    private mutating func readTrack(_ bytes: [UInt8], _ name: String) {
        let declaration = String(decoding: bytes.prefix { $0 != UInt8(ascii: ">") }, as: UTF8.self)
            .lowercased()
        let isDeclared = declaration.contains("encoding") && !declaration.contains("utf-8")
        guard !isDeclared, String(validating: bytes, as: UTF8.self) == nil else {
            return take(Replay.gpx(Data(bytes), named: name))
        }
        let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        let good = lines.prefix { String(validating: $0, as: UTF8.self) != nil }
        var track = Replay.gpx(Data(good.joined(separator: [UInt8(ascii: "\n")])), named: name)
        if track.isCutShort { track.problems.removeLast() }
        track.problems.append(
            Replay.Problem(line: good.count + 1, reason: "it is not UTF-8; the rest is not read"))
        take(track)
    }

    private static func format(of bytes: [UInt8], named name: String) -> Format? {
        switch URL(fileURLWithPath: name).pathExtension.lowercased() {
        case "ndjson", "jsonl", "json": return .ndjson
        case "csv": return .csv
        case "log": return .log
        case "gpx", "xml": return .gpx
        default: break
        }
        switch bytes.drop(while: { $0 <= 0x20 }).first {
        case UInt8(ascii: "{"): return .ndjson
        case UInt8(ascii: "<"): return .gpx
        default: return nil
        }
    }

    private static func lines(_ bytes: [UInt8]) -> [(Int, [UInt8])] {
        bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).enumerated()
            .map {
                (
                    $0.offset + 1,
                    Array($0.element.last == UInt8(ascii: "\r") ? $0.element.dropLast() : $0.element)
                )
            }
            .filter { !$0.1.allSatisfy { $0 == 0x20 || $0 == 0x09 } }
    }

    private mutating func take(_ replay: Replay) {
        problems = replay.problems
        var last = (line: 0, count: 0)
        for (line, event) in zip(replay.lines, replay.events) {
            last = (line, line == last.line ? last.count + 1 : 0)
            // Track points may share a line and may be equal, so the number within the line makes the id unique.
            let text =
                JSONValue.object(event.properties).bytes
                + Array((last.count > 0 ? "\n\(last.count)" : "").utf8)
            var message: JSONObject = [
                "type": .string(event.kind.rawValue), "userId": .string(event.userID),
                "properties": .object(event.properties), "messageId": .string(messageID(line, text)),
            ]
            message[event.kind == .track ? "event" : "name"] = .string(event.name)
            if case .string(let time)? = event.properties["time"] { message["timestamp"] = .string(time) }
            events.append(SendEvent(line: line, userID: event.userID, message: .object(message)))
        }
    }

    private static let longestLine = 1 << 20
    /// The object and the array around the events of a batch.
    private static let levelsOfBatch = 2

    /// Parses a line of NDJSON, a message of the native dialect. Adds missing members `type` and `messageId`.
    private func message(_ text: [UInt8], line: Int) throws(AccessLog.LineProblem) -> SendEvent {
        let value: JSONValue
        do {
            value = try StrictJSONParser(
                maximumBytes: Self.longestLine,
                maximumDepth: 64 - Self.levelsOfBatch
            ).parse(bytes: text) { $0.value }
        } catch {
            throw AccessLog.LineProblem(reason: Self.reason(error))
        }
        guard case .object(var members) = value else {
            throw AccessLog.LineProblem(reason: "it is not a JSON object")
        }
        if members["type"] == nil { members["type"] = "track" }
        // For a null or empty id, the gateway would generate a new id each time.
        if [nil, .null, ""].contains(members["messageId"]) {
            members["messageId"] = .string(messageID(line, text))
        }
        var user: String?
        if case .string(let id)? = members["userId"], !id.isEmpty { user = id }
        return SendEvent(line: line, userID: user, message: .object(members))
    }

    private static func reason(_ error: any Error) -> String {
        switch error as? StrictJSONError {
        case .tooLarge?: "it is longer than 1 MiB"
        case .notUTF8?: "it is not UTF-8"
        case .nameTooLong: "a member's name is too long"
        case .duplicateMember?: "an object has a duplicate member"
        case .tooDeep?: "it is nested deeper than 62 levels"
        case .numberOutOfRange?: "a number is out of range"
        case .outOfMemory?: "there is not enough memory for it"
        case .empty?, .syntax?, nil: "it is not JSON"
        }
    }

    /// Converts a row of CSV. The columns `event` or `name`, `type`, `user_id`, `anonymous_id`, `timestamp` and
    /// `message_id` have a meaning, also in camel case; all other columns are properties.
    private func event(_ row: CSVReader.Row, _ header: [String]) throws(AccessLog.LineProblem) -> SendEvent {
        guard row.fields.count == header.count else {
            throw AccessLog.LineProblem(
                reason: "the row has \(row.fields.count) fields and the header \(header.count)")
        }
        var message: JSONObject = ["type": "track"]
        var properties: JSONObject = [:]
        for (column, field) in zip(header, row.fields) where !field.isEmpty {
            guard !column.isEmpty else {
                throw AccessLog.LineProblem(reason: "a column without a name has the value \(field)")
            }
            if let member = Self.member(ofColumn: column) {
                message[member] = .string(field)
            } else {
                properties[column] = Self.value(field)
            }
        }
        message["properties"] = .object(properties)
        if message["messageId"] == nil {
            message["messageId"] = .string(
                messageID(row.line, Array(row.fields.joined(separator: "\u{1F}").utf8)))
        }
        var user: String?
        if case .string(let id)? = message["userId"] { user = id }
        return SendEvent(line: row.line, userID: user, message: .object(message))
    }

    /// A number if the field is a canonical JSON number, else text, so that no digit, sign or zero is lost.
    private static func value(_ field: String) -> JSONValue {
        var numbers: [JSONValue] = []
        if let integer = Int64(field) { numbers.append(.integer(integer)) }
        if let number = Double(field), number.isFinite { numbers.append(.number(number)) }
        return numbers.first { $0.bytes == Array(field.utf8) } ?? .string(field)
    }

    private func messageID(_ line: Int, _ text: [UInt8]) -> String {
        "send-" + Base64URL.encode(Array(SHA256.digest(Array("\(source)\n\(line)\n".utf8) + text).prefix(18)))
    }
}
