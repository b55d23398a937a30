internal import CountersignCore
internal import CountersignJOSE
internal import Foundation

/// One event to send, as the native dialect has it.
struct SendEvent: Sendable {
    /// Where it stands in the input, counted from 1.
    let line: Int
    /// Whose it is; nil for an anonymous one.
    let userID: String?
    let message: JSONValue
}

/// Reads what `countersign send` is given.
struct SendInput: Sendable {
    enum Format: String, Sendable, CaseIterable {
        case ndjson, csv, log, gpx
    }

    let events: [SendEvent]
    let problems: [Replay.Problem]

    /// Reads a whole input. Message ids are derived from the name, the line and its text, so that sending a file twice
    /// stores it once; an NDJSON line or a CSV column `message_id` may give its own.
    ///
    /// - Parameters:
    ///   - bytes: The input.
    ///   - name: What it is called.
    ///   - format: What it is; nil takes the name's ending or, without one, the first byte.
    init(_ bytes: [UInt8], named name: String, format: Format?) {
        var events: [SendEvent] = []
        var problems: [Replay.Problem] = []
        switch format ?? Self.format(of: bytes, named: name) {
        case .ndjson:
            for (line, text) in Self.lines(bytes) {
                do throws(AccessLog.LineProblem) {
                    events.append(try Self.message(text, line: line, name: name))
                } catch {
                    problems.append(Replay.Problem(line: line, reason: error.reason))
                }
            }
        case .csv:
            let table = CSVReader.rows(bytes)
            guard let header = table.first else { break }
            for row in table.dropFirst() {
                do throws(AccessLog.LineProblem) {
                    events.append(try Self.row(row, header.fields, name: name))
                } catch {
                    problems.append(Replay.Problem(line: row.line, reason: error.reason))
                }
            }
        case .log:
            let replay = AccessLog.read(Data(bytes), named: name)
            problems = replay.problems
            events = Self.events(replay, name: name)
        case .gpx:
            let replay = Replay.gpx(Data(bytes), named: name)
            problems = replay.problems
            events = Self.events(replay, name: name)
        }
        self.events = events
        self.problems = problems
    }

    private static func format(of bytes: [UInt8], named name: String) -> Format {
        switch URL(fileURLWithPath: name).pathExtension.lowercased() {
        case "ndjson", "jsonl", "json": return .ndjson
        case "csv": return .csv
        case "log": return .log
        case "gpx", "xml": return .gpx
        default: break
        }
        switch bytes.drop(while: { $0 <= 0x20 || [0xEF, 0xBB, 0xBF].contains($0) }).first {
        case UInt8(ascii: "{"): return .ndjson
        case UInt8(ascii: "<"): return .gpx
        default: return .log
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

    private static func events(_ replay: Replay, name: String) -> [SendEvent] {
        replay.events.enumerated().map { index, event in
            var message: [String: JSONValue] = [
                "type": .string(event.kind.rawValue), "userId": .string(event.userID),
                "properties": .object(event.properties),
                "messageId": .string(
                    messageID(name, index + 1, JSONValue.object(event.properties).bytes)),
            ]
            message[event.kind == .track ? "event" : "name"] = .string(event.name)
            if case .string(let time)? = event.properties["time"] { message["timestamp"] = .string(time) }
            return SendEvent(line: index + 1, userID: event.userID, message: .object(message))
        }
    }

    /// A line of NDJSON: a message of the native dialect. What is missing of `type` and `messageId` is added.
    private static func message(
        _ text: [UInt8], line: Int, name: String
    ) throws(AccessLog.LineProblem) -> SendEvent {
        let value = try? StrictJSONParser(maximumBytes: 1 << 20).parse(bytes: text) { $0.value }
        guard case .object(var members)? = value else {
            throw AccessLog.LineProblem(
                reason: "the line is not a JSON object in which each member stands once")
        }
        if members["type"] == nil { members["type"] = "track" }
        if members["messageId"] == nil { members["messageId"] = .string(messageID(name, line, text)) }
        var user: String?
        if case .string(let id)? = members["userId"], !id.isEmpty { user = id }
        return SendEvent(line: line, userID: user, message: .object(members))
    }

    /// A row of CSV: `event`, `type`, `user_id`, `anonymous_id`, `timestamp`, `message_id`; all other columns are
    /// properties.
    private static func row(
        _ row: CSVReader.Row, _ header: [String], name: String
    ) throws(AccessLog.LineProblem) -> SendEvent {
        guard row.fields.count == header.count else {
            throw AccessLog.LineProblem(
                reason: "the row has \(row.fields.count) fields and the header \(header.count)")
        }
        var message: [String: JSONValue] = ["type": "track"]
        var properties: [String: JSONValue] = [:]
        for (column, field) in zip(header, row.fields) where !field.isEmpty {
            switch column {
            case "type": message["type"] = .string(field)
            case "event", "name": message["event"] = .string(field)
            case "user_id": message["userId"] = .string(field)
            case "anonymous_id": message["anonymousId"] = .string(field)
            case "timestamp": message["timestamp"] = .string(field)
            case "message_id": message["messageId"] = .string(field)
            default:
                properties[column] =
                    Int64(field).map { .integer($0) } ?? Double(field).flatMap {
                        $0.isFinite ? .number($0) : nil
                    }
                    ?? .string(field)
            }
        }
        message["properties"] = .object(properties)
        if message["messageId"] == nil {
            message["messageId"] = .string(
                messageID(name, row.line, Array(row.fields.joined(separator: "\u{1F}").utf8)))
        }
        var user: String?
        if case .string(let id)? = message["userId"] { user = id }
        return SendEvent(line: row.line, userID: user, message: .object(message))
    }

    private static func messageID(_ name: String, _ line: Int, _ text: [UInt8]) -> String {
        let digest = SHA256.digest(
            Array("\(URL(fileURLWithPath: name).lastPathComponent)\n\(line)\n".utf8) + text)
        return "send-" + Base64URL.encode(Array(digest.prefix(18)))
    }
}
