internal import CountersignCore
internal import CountersignJSON
internal import Foundation
internal import GatewayModel

struct StreamInfo {
    /// The sequence number of the last message that was ever stored in the stream.
    var lastSequence: Int64
    /// The header of the last stored message that the template's subject filter matches; nil without such a message.
    var lastHeader: BytewiseDictionary<String>?
}

struct JetStream {
    private let connection: any StreamConnection
    private let settings: StreamSettings
    private let filter: String

    init(_ connection: any StreamConnection, _ settings: StreamSettings, _ template: SubjectTemplate) {
        self.connection = connection
        self.settings = settings
        filter = template.filter
    }

    /// Reads the state of the stream. Creates the stream if it does not exist; an existing one is not
    /// changed.
    func info() throws(StreamError) -> StreamInfo {
        var answer = try request("STREAM.INFO", [:])
        if answer.code == JetStreamError.streamNotFound { answer = try request("STREAM.CREATE", newStream) }
        if let code = answer.code { throw StreamError(.streamDiffers, rejection(code, answer.text)) }
        try check(answer.value["config"])
        guard let last = answer.value["state"]["last_seq"].integer, last >= 0,
            let count = answer.value["state"]["messages"].integer
        else { throw StreamError(.connection, "the server's answer about the stream cannot be read") }
        guard count > 0 else { return StreamInfo(lastSequence: last, lastHeader: nil) }
        let found = try request("STREAM.MSG.GET", ["last_by_subj": .string(filter)])
        if found.code == JetStreamError.noMessage { return StreamInfo(lastSequence: last, lastHeader: nil) }
        if let code = found.code { throw StreamError(.streamDiffers, rejection(code, found.text)) }
        let header = found.value["message"]["hdrs"].text.flatMap { Data(base64Encoded: $0) }
        return StreamInfo(lastSequence: last, lastHeader: Self.fields(header.map { [UInt8]($0) } ?? []))
    }

    private func rejection(_ code: Int64, _ text: String) -> String {
        "the server rejects the stream \(settings.stream): \(text) (\(code))"
    }

    private func request(
        _ operation: String, _ body: JSONObject
    ) throws(StreamError) -> (value: JSONValue, code: Int64?, text: String) {
        let bytes = try connection.request(
            "$JS.API.\(operation).\(settings.stream)", body.isEmpty ? [] : JSONValue.object(body).bytes)
        let parser = StrictJSONParser(maximumBytes: max(1, bytes.count), maximumNameBytes: 1_024)
        guard let value = try? parser.parse(bytes: bytes, { $0.value }) else {
            throw StreamError(.connection, "the server's answer is not JSON; is it a NATS server?")
        }
        let error = value["error"]
        let text = DeliveryRecord.text(Array((error["description"].text ?? "").utf8))
        let code = error["err_code"].integer ?? error["code"].integer
        if error != .null, code == nil { throw StreamError(.connection, "a server's answer cannot be read") }
        return (value, code, text)
    }

    /// A stream on disk without limits. The gateway does not change limits that an operator sets later.
    private var newStream: JSONObject {
        [
            "name": .string(settings.stream), "subjects": [.string(filter)], "storage": "file",
            "retention": "limits", "num_replicas": .integer(Int64(settings.replicas)), "allow_direct": true,
            "description": "Events of Countersign",
        ]
    }

    private func check(_ config: JSONValue) throws(StreamError) {
        func differ(_ what: String) throws(StreamError) {
            throw StreamError(
                .streamDiffers,
                "the NATS stream \(settings.stream) \(what); change it, or use another. The gateway does not change it"
            )
        }
        let subjects = config["subjects"].elements.compactMap(\.text)
        if !subjects.contains(where: { Self.covers($0, filter) }) {
            try differ("lacks the subject \(filter)")
        }
        if config["sealed"] == true { try differ("is sealed") }
        if config["no_ack"] == true { try differ("sends no acknowledgements") }
        if config["mirror"] != .null || !config["sources"].elements.isEmpty {
            try differ("copies other streams")
        }
        let replicas = config["num_replicas"].integer ?? 1
        if replicas < settings.replicas {
            try differ("has \(replicas) replicas, not \(settings.replicas)")
        }
    }

    /// Whether all subjects of `inner` match `outer`.
    static func covers(_ outer: String, _ inner: String) -> Bool {
        let (outer, inner) = (outer.split(separator: "."), inner.split(separator: "."))
        for (index, token) in outer.enumerated() {
            if token == ">" { return inner.count > index }
            guard index < inner.count, token == "*" || token == inner[index] else { return false }
        }
        return outer.count == inner.count
    }

    /// The header fields of a message. The last field of a name wins.
    private static func fields(_ header: [UInt8]) -> BytewiseDictionary<String> {
        var fields: BytewiseDictionary<String> = [:]
        for line in header.split(separator: UInt8(ascii: "\n")).dropFirst() {
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { continue }
            let name = String(decoding: line[..<colon], as: UTF8.self)
            let value = String(decoding: line[line.index(after: colon)...], as: UTF8.self)
            fields[name] = value.trimmingCharacters(in: .whitespacesAndNewlines)
        }
        return fields
    }
}

extension JSONValue {
    fileprivate subscript(name: String) -> JSONValue { members?[name] ?? .null }
    fileprivate var text: String? { if case .string(let text) = self { text } else { nil } }
    fileprivate var integer: Int64? { if case .integer(let number) = self { number } else { nil } }
    fileprivate var elements: [JSONValue] { if case .array(let elements) = self { elements } else { [] } }
}
