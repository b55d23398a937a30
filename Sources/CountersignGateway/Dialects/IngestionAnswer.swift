internal import CountersignCore

extension HTTPResponse {
    /// What became of a batch, event by event where one was rejected.
    static func ingested(
        _ outcome: AppendOutcome, rejected: [RejectedEvent], warning: AuthErrorBody?
    ) -> HTTPResponse {
        var body = Array(
            #"{"success":true,"accepted":\#(outcome.accepted),"duplicates":\#(outcome.duplicates),"rejected":["#
                .utf8)
        for (position, event) in rejected.enumerated() {
            if position > 0 { body.append(UInt8(ascii: ",")) }
            JSONValue.object([
                "index": .integer(Int64(event.index)), "code": .string(event.code),
                "reason": .string(event.reason),
            ]).write(to: &body)
        }
        body.append(UInt8(ascii: "]"))
        warning?.writeMember(to: &body)
        body.append(UInt8(ascii: "}"))
        return .json(200, body)
    }
}
