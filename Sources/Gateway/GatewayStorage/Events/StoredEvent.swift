internal import CountersignCore
internal import CountersignSQLite
internal import Foundation
package import GatewayModel

package struct StoredEvent: Sendable {
    /// Increases in the order of storing.
    package let sequence: Int64
    package let timestampMilliseconds: Int64
    package let receivedMilliseconds: Int64
    /// The JSON of the event as received.
    package let body: [UInt8]
    private let knownVerdict: EventProof.Verdict?
    private let code: Int64?
    private let claims: String?
    private let texts: EventTexts

    package init(
        sequence: Int64, messageID: String, type: String, userID: String?, anonymousID: String?,
        name: String?, timestampMilliseconds: Int64, receivedMilliseconds: Int64, proof: EventProof?,
        body: [UInt8]
    ) {
        self.sequence = sequence
        self.timestampMilliseconds = timestampMilliseconds
        self.receivedMilliseconds = receivedMilliseconds
        self.body = body
        knownVerdict = proof?.verdict
        code = (proof?.code).map { Int64($0) }
        claims = proof?.claims
        texts = EventTexts([
            messageID, type, userID, anonymousID, name, proof?.keyID, proof?.enforcement, proof?.dialect,
            proof?.requestID, proof?.tokenID,
        ])
    }

    private init(_ event: StoredEvent, _ texts: EventTexts) {
        sequence = event.sequence
        timestampMilliseconds = event.timestampMilliseconds
        receivedMilliseconds = event.receivedMilliseconds
        body = Array("null".utf8)
        knownVerdict = event.knownVerdict
        code = event.code
        claims = nil
        self.texts = texts
    }

    /// A copy for readers without permission: with the given ids, and without the body and other texts of the client.
    package func withoutContent(userID: String?, anonymousID: String?) -> StoredEvent {
        StoredEvent(
            self,
            EventTexts([
                nil, texts[.type], userID, anonymousID, nil, texts[.keyID], texts[.enforcement],
                texts[.dialect], nil, nil,
            ]))
    }

    /// Reads a row with the columns of ``EventPageBuilder``.
    init(_ row: SQLiteStatement) {
        sequence = row.int64(0)
        timestampMilliseconds = row.int64(6)
        receivedMilliseconds = row.int64(7)
        body = row.blob(8)
        knownVerdict = row.optionalText(9).flatMap { EventProof.Verdict(rawValue: $0) }
        code = knownVerdict == nil ? nil : row.optionalInt64(10)
        claims = knownVerdict == nil ? nil : row.optionalText(17)
        texts = EventTexts(row, columns: 1...5, knownVerdict == nil ? nil : 11...15, uuid: 16)
    }

    package var messageID: String { texts[.messageID] ?? "" }
    package var type: String { texts[.type] ?? "" }
    package var userID: String? { texts[.userID] }
    package var anonymousID: String? { texts[.anonymousID] }
    package var name: String? { texts[.name] }

    /// Nil for events that an earlier version stored without a verdict.
    package var proof: EventProof? {
        knownVerdict.map { verdict in
            EventProof(
                verdict: verdict, code: code.map { Int($0) }, keyID: texts[.keyID],
                enforcement: texts[.enforcement], dialect: texts[.dialect] ?? "",
                requestID: texts[.requestID] ?? "", tokenID: texts[.tokenID], claims: claims)
        }
    }

    /// `unknown` for events that an earlier version stored without a verdict.
    package var verdict: String { knownVerdict?.rawValue ?? "unknown" }

    /// Appends a JSON object, with the position if given, `events_missed` if first after a gap, and `claims` if any.
    ///
    /// The body is copied byte for byte. With `isLine`, spaces replace the line breaks of the body.
    package func write(
        to output: inout [UInt8], position: String? = nil, asLine isLine: Bool = false,
        afterGap isAfterGap: Bool = false
    ) {
        output.append(contentsOf: #"{"body":"#.utf8)
        writeBody(to: &output, asLine: isLine)
        texts.withWriter(of: position ?? "", to: &output) { writer in
            writer.text(#","anonymous_id":"#, .anonymousID)
            writer.number(#","code":"#, code)
            writer.text(#","dialect":"#, .dialect)
            writer.text(#","enforcement":"#, .enforcement)
            if isAfterGap { writer.put(#","events_missed":true"#) }
            writer.text(#","key_id":"#, .keyID)
            writer.text(#","message_id":"#, .messageID)
            writer.text(#","name":"#, .name)
            if let position { writer.word(#","position":"#, position) }
            writer.number(#","received_ms":"#, receivedMilliseconds)
            writer.text(#","request_id":"#, .requestID)
            writer.number(#","seq":"#, sequence)
            writer.number(#","timestamp_ms":"#, timestampMilliseconds)
            writer.text(#","token_id":"#, .tokenID)
            writer.text(#","type":"#, .type)
            writer.text(#","user_id":"#, .userID)
            writer.word(#","verdict":"#, verdict)
        }
        if let claims {
            output.append(contentsOf: #","claims":"#.utf8)
            output.append(contentsOf: claims.utf8)
        }
        output.append(UInt8(ascii: "}"))
    }

    /// Writes null if the body is not JSON, as after changes by another program.
    private func writeBody(to output: inout [UInt8], asLine isLine: Bool) {
        guard BodyParsers.isJSON(body) else {
            output.append(contentsOf: "null".utf8)
            return
        }
        let start = output.count
        output.append(contentsOf: body)
        guard isLine, Self.hasLineBreaks(body) else { return }
        for index in start..<output.count where output[index] == 0x0A || output[index] == 0x0D {
            output[index] = 0x20
        }
    }

    private static func hasLineBreaks(_ body: [UInt8]) -> Bool {
        body.withUnsafeBytes { bytes in
            bytes.baseAddress.map {
                memchr($0, 0x0A, bytes.count) != nil || memchr($0, 0x0D, bytes.count) != nil
            } ?? false
        }
    }
}
