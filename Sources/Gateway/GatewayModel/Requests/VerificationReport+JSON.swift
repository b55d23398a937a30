package import CountersignCore
package import CountersignJOSE

extension VerificationReport {
    package var verdict: JSONObject {
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

    package func json(withUser: Bool, withRevocations: Bool = true) -> JSONValue {
        var members = verdict
        members["key"] = matchedKeyID.map { .string($0) } ?? .null
        members["warnings"] = .array(warnings.map { .string($0.rawValue) })
        members["fix"] = code.map { .string($0.fix) } ?? .null
        members["checks"] = .array(
            VerificationCheck.list(
                of: self, withUser: withUser, withRevocations: withRevocations
            ).map {
                [
                    "check": .string($0.name), "code": .integer(Int64($0.code.rawValue)),
                    "outcome": .string($0.outcome.rawValue), "details": $0.details.jsonValue,
                ]
            })
        return .object(members)
    }

    package static let jsonShape = JSONShape.named(
        "Verification",
        .all([
            "verdict": .choice(["accept", "reject"]), "code": .nullable(.count),
            "reason": .nullable(.string),
            "faults": .list(.all(["code": .count, "reason": .string, "detail": .string])),
            "key": .nullable(.string), "warnings": .list(.string), "fix": .nullable(.string),
            "checks": .list(
                .all([
                    "check": .string, "code": .count,
                    "outcome": .choice(of: VerificationCheck.Outcome.self), "details": .list(.string),
                ])),
        ]))
}
