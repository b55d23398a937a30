internal import CountersignBloomreach
internal import CountersignCore
internal import CountersignDelivery
internal import CountersignTransport
internal import Foundation

enum ErrorJSON {
    static func members(_ error: CountersignError) -> JSONValue {
        var members: JSONObject = [
            "code": .string(error.code.rawValue), "detail": .string(error.detail),
            "retryable": .bool(error.isWorthRetrying),
        ]
        if let status = error.status { members["status"] = .integer(Int64(status)) }
        if let code = error.authCode { members["authCode"] = .integer(Int64(code.rawValue)) }
        if let seconds = error.retryAfter { members["retryAfter"] = .number(seconds) }
        if let token = error.projectToken { members["projectToken"] = .string(token) }
        return .object(members)
    }
}

extension JSONValue {
    init(_ text: String?) { self = text.map { .string($0) } ?? .null }
    init(_ number: Int) { self = .integer(Int64(number)) }
    init(_ number: Double?) { self = number.map { .number($0) } ?? .null }
}

extension FlushResult {
    var json: JSONValue {
        [
            "delivered": JSONValue(delivered), "queued": JSONValue(queued),
            "ending": .string(ending.rawValue),
            "batches": .array(
                batches.map { batch in
                    [
                        "userId": JSONValue(batch.userID), "events": JSONValue(batch.eventCount),
                        "delivered": JSONValue(batch.deliveredCount),
                        "outcome": .string(batch.outcome.rawValue),
                        "code": .string(batch.code),
                    ]
                }),
        ]
    }
}

extension CountersignSnapshot {
    var json: JSONValue {
        let counts = [
            ("queued", queued), ("queuedBytes", queuedBytes), ("unsaved", unsaved), ("recorded", recorded),
            ("sent", sent), ("duplicates", duplicates), ("quarantined", quarantined), ("requeued", requeued),
            ("evictedFromQuarantine", evictedFromQuarantine), ("dropped", dropped),
            ("evictedByCount", evictedByCount), ("evictedByBytes", evictedByBytes),
            ("evictedByAge", evictedByAge), ("wiped", wiped), ("salvaged", salvaged),
            ("unreadable", unreadable), ("damagedFiles", damagedFiles),
            ("authenticationFailures", authenticationFailures),
        ]
        var members = JSONObject(uniqueKeysWithValues: counts.map { ($0, JSONValue($1)) })
        members["parked"] = .array(
            parked.map { user in
                [
                    "userId": JSONValue(user.userID), "reason": .string(user.reason),
                    "failures": JSONValue(user.failures), "isPaused": .bool(user.isPaused),
                    "nextAttemptIn": JSONValue(user.nextAttemptIn),
                ]
            })
        members["configurationProblem"] = JSONValue(configurationProblem)
        members["lastError"] = JSONValue(lastError)
        members["nextAttemptIn"] = JSONValue(nextAttemptIn)
        members["clockOffset"] = .number(clockOffset)
        members["sessionId"] = .string(sessionID)
        return .object(members)
    }
}

extension QuarantinedEvent {
    var json: JSONValue {
        [
            "messageId": .string(messageID), "userId": JSONValue(userID), "code": .string(code),
            "reason": .string(reason), "date": .number(date.timeIntervalSince1970),
            "body": JSONDocument.value(body) ?? .null,
        ]
    }
}
