internal import CountersignCore
internal import CountersignJOSE

extension VerificationReport {
    /// The members that all outputs share: `verdict`, `code`, `reason`, `faults`.
    var verdict: JSONObject {
        [
            "verdict": isAccepted ? "accept" : "reject",
            "code": code.map { .integer(Int64($0.rawValue)) } ?? .null,
            "reason": code.map { .string($0.reason) } ?? .null,
            "faults": .array(
                faults.map {
                    [
                        "code": .integer(Int64($0.code.rawValue)), "reason": .string($0.code.reason),
                        "detail": .string($0.detail),
                    ]
                }),
        ]
    }

    /// The result with all checks, for `token verify --json`.
    func json(_ checks: [VerificationCheck]) -> JSONValue {
        var members = verdict
        members["key"] = matchedKeyID.map { .string($0) } ?? .null
        members["warnings"] = .array(warnings.map { .string($0.rawValue) })
        members["fix"] = code.map { .string($0.fix) } ?? .null
        members["checks"] = .array(
            checks.map {
                [
                    "check": .string($0.name), "code": .integer(Int64($0.code.rawValue)),
                    "outcome": .string($0.outcome.rawValue),
                ]
            })
        return .object(members)
    }
}
