internal import CountersignCore
internal import GatewayHTTP
internal import GatewayModel

extension HTTPResponse {
    static func ingested(
        _ outcome: AppendOutcome, _ events: DecodedEvents? = nil, warning: AuthErrorBody?,
        failsWithoutEvents: Bool = false
    ) -> HTTPResponse {
        let rejected = events?.rejected ?? []
        let isFailure = !rejected.isEmpty && outcome.accepted == 0 && outcome.duplicates == 0
        var body: [UInt8] = []
        body.reserveCapacity(128)
        body.append(
            contentsOf: isFailure
                ? #"{"success":false,"code":"all_events_rejected","reason":"every event was rejected; see rejected""#
                    .utf8
                : #"{"success":true"#.utf8)
        body.append(contentsOf: #","accepted":"#.utf8)
        body.append(decimal: Int64(outcome.accepted))
        body.append(contentsOf: #","duplicates":"#.utf8)
        body.append(decimal: Int64(outcome.duplicates))
        body.append(contentsOf: #","rejected":["#.utf8)
        for (position, event) in rejected.enumerated() {
            if position > 0 { body.append(UInt8(ascii: ",")) }
            event.write(to: &body)
        }
        body.append(UInt8(ascii: "]"))
        EventWarning.write(events?.warnings ?? [], to: &body)
        warning?.writeMember(to: &body)
        body.append(UInt8(ascii: "}"))
        return .json(isFailure && failsWithoutEvents ? 400 : 200, body)
    }

    static let ingestedSchemas: JSONObject = RejectedEvent.schemas.merging([
        "Stored": [
            "type": "object", "required": ["success", "accepted", "duplicates", "rejected"],
            "properties": [
                "success": [
                    "type": "boolean",
                    "description":
                        "False, with the code all_events_rejected, if there were events and all of them were rejected.",
                ],
                "code": ["const": "all_events_rejected"], "reason": ["type": "string"],
                "accepted": ["type": "integer", "minimum": 0],
                "duplicates": ["type": "integer", "minimum": 0],
                "rejected": ["type": "array", "items": APIOperation.schema("RejectedEvent")],
                "warnings": EventWarning.schema,
                "auth_warning": APIOperation.schema("AuthError"),
            ],
        ]
    ]) { own, _ in own }
}
