/// How strictly an app's tokens are enforced, and when that changes automatically.
package struct EnforcementPlan: Sendable, Equatable {
    package var state = Enforcement.disabled
    /// The percentage of users that the state `required` applies to. The state `optional` applies to all other users,
    /// except in requests with several users.
    package var rampPercent = 100
    /// A later change, which `AppDirectory.switchScheduled` makes.
    package var scheduled: Switch?
    package var autoReturn: Return?
    /// The last automatic return to `optional`; nil after any later change of the plan.
    package var returned: Returned?
    package var sinceMilliseconds: Int64 = 0

    package init() {}

    package func isDue(at milliseconds: Int64) -> Bool {
        scheduled.map { $0.atMilliseconds <= milliseconds } ?? false
    }

    package struct Switch: Sendable, Equatable {
        package var state: Enforcement
        package var atMilliseconds: Int64
        package var rampPercent = 100
    }

    /// The condition for the automatic return from `required` to `optional`: too many users whose token has expired or
    /// is no longer verified by any key. A failure counts only if the same token was accepted before. Otherwise an
    /// attacker could cause the return. Alerts about rejected requests use the same numbers, for requests.
    package struct Return: Sendable, Equatable {
        /// The minimum percentage of users with such a failure, among users in the window whose token is or was valid.
        package var rejectedPercent: Int
        package var windowMinutes: Int
        /// The minimum number of users within the window whose token is or was valid.
        package var minimumRequests: Int

        package init(rejectedPercent: Int, windowMinutes: Int, minimumRequests: Int) {
            self.rejectedPercent = rejectedPercent
            self.windowMinutes = windowMinutes
            self.minimumRequests = minimumRequests
        }
    }

    package struct Returned: Sendable, Equatable {
        package var atMilliseconds: Int64
        package var rejectedPercent: Double

        package init(atMilliseconds: Int64, rejectedPercent: Double) {
            self.atMilliseconds = atMilliseconds
            self.rejectedPercent = rejectedPercent
        }
    }
}

extension EnforcementPlan: AppSetting {
    package static let settingName = "enforcement"

    package static func standard(for appID: String) -> EnforcementPlan { EnforcementPlan() }

    package static let fields: [JSONField<EnforcementPlan>] = [
        .choice("state", \.state, unreadable: .required),
        .integer("ramp_percent", \.rampPercent, 1...100),
        .part("scheduled", \.scheduled, standard: Switch(state: .required, atMilliseconds: 0)),
        .part(
            "auto_return", \.autoReturn,
            standard: Return(rejectedPercent: 100, windowMinutes: 60, minimumRequests: 100)),
        .part(
            "returned", \.returned, standard: Returned(atMilliseconds: 0, rejectedPercent: 0),
            isOperators: false),
        .own("since_ms", \.sinceMilliseconds),
    ]

    package func check() throws(GatewayError) {
        for (state, percent) in [(state, rampPercent)]
            + (scheduled.map { [($0.state, $0.rampPercent)] } ?? [])
        {
            guard state == .required || percent == 100 else {
                throw GatewayError(
                    .invalid, "ramp_percent can only be less than 100 in the state required")
            }
        }
    }
}

extension EnforcementPlan.Switch: SettingPart {
    package static let fields: [JSONField<Self>] = [
        .choice("state", \.state, unreadable: .required),
        .member("at_ms", \.atMilliseconds, .integer(1...253_402_300_799_999), isRequired: true),
        .integer("ramp_percent", \.rampPercent, 1...100),
    ]
}

extension EnforcementPlan.Return: SettingPart {
    package static let fields: [JSONField<Self>] = [
        .integer("rejected_percent", \.rejectedPercent, 1...100, isRequired: true),
        .integer("window_minutes", \.windowMinutes, 1...60, isRequired: true),
        .integer("minimum_requests", \.minimumRequests, 1...1_000_000_000),
    ]
}

extension EnforcementPlan.Returned: SettingPart {
    package static let fields: [JSONField<Self>] = [
        .member("at_ms", \.atMilliseconds, .milliseconds, isRequired: true),
        .member("rejected_percent", \.rejectedPercent, .number),
    ]
}
