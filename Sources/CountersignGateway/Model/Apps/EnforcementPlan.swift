package import CountersignCore

/// How strictly an app is judged, and how that goes on by itself.
package struct EnforcementPlan: Sendable, Equatable {
    package var state = Enforcement.disabled
    /// How many of a hundred users are judged by it while it is `required`; the others as if it were `optional`.
    package var rampPercent = 100
    package var scheduled: Switch?
    package var autoReturn: Return?
    /// When it last went back to `optional` by itself; nil once an operator has set it again.
    package var returned: Returned?
    /// Milliseconds since 1970 when the state was set.
    package var sinceMilliseconds: Int64 = 0

    /// A change at a set time.
    package struct Switch: Sendable, Equatable {
        package var state: Enforcement
        package var atMilliseconds: Int64
        /// Of how many of a hundred users it holds, when it is `required`.
        package var rampPercent = 100
    }

    /// When `required` becomes `optional` again by itself: when users whose token was good are refused, because it has
    /// expired or no key verifies it any more. What anybody else sends does not count, for a stranger could bring it about.
    package struct Return: Sendable, Equatable {
        /// Of the users within the window whose token is or was good.
        package var rejectedPercent: Int
        package var windowMinutes: Int
        /// How many such users there must be.
        package var minimumRequests: Int
    }

    package struct Returned: Sendable, Equatable {
        package var atMilliseconds: Int64
        package var rejectedPercent: Double
    }

    /// The same plan, set at another time.
    func since(_ milliseconds: Int64) -> EnforcementPlan {
        var plan = self
        plan.sinceMilliseconds = milliseconds
        return plan
    }

    /// The plan as the audit log and the admin API have it.
    package var json: JSONValue {
        [
            "state": .string(state.rawValue), "ramp_percent": .integer(Int64(rampPercent)),
            "scheduled": scheduled.map {
                [
                    "state": .string($0.state.rawValue), "at_ms": .integer($0.atMilliseconds),
                    "ramp_percent": .integer(Int64($0.rampPercent)),
                ]
            } ?? .null,
            "auto_return": autoReturn.map {
                [
                    "rejected_percent": .integer(Int64($0.rejectedPercent)),
                    "window_minutes": .integer(Int64($0.windowMinutes)),
                    "minimum_requests": .integer(Int64($0.minimumRequests)),
                ]
            } ?? .null,
            "returned": returned.map {
                ["at_ms": .integer($0.atMilliseconds), "rejected_percent": .number($0.rejectedPercent)]
            } ?? .null,
        ]
    }
}

extension EnforcementPlan {
    /// Whether a user is among the first `percent` of a hundred. The same user of the same app always is or is not, and a
    /// higher percentage only adds users.
    static func isRamped(_ userID: String, of appID: String, percent: Int) -> Bool {
        if percent >= 100 { return true }
        // FNV-1a and a final mix; nothing secret depends on it.
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in appID.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        hash = (hash ^ 0xFF) &* 0x100_0000_01b3
        for byte in userID.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        hash = (hash ^ (hash >> 33)) &* 0xff51_afd7_ed55_8ccd
        hash ^= hash >> 33
        return hash % 100 < UInt64(max(0, percent))
    }
}
