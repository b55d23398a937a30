package import CountersignCore

/// A webhook endpoint of an app, and the events delivered to it.
package struct WebhookEndpoint: Sendable, Equatable {
    /// `wh_` and a UUID; never reused.
    package private(set) var id = ""
    package private(set) var appID = ""
    package var url = ""
    /// Whether the URL may resolve to an address of a private network or of this machine.
    package var allowsPrivateAddresses = false
    /// The filter of delivered events. Nil members match every event.
    package var verdict: String?
    package var type: String?
    package var name: String?
    package var userID: String?
    package var claim: String?
    package var batchSize = 100
    /// The extra days for which retention keeps undelivered events; nil keeps none.
    package var holdDays: Int?
    package var pause: WayPause?
    package var secret: [UInt8] = []
    /// The previous key, which also signs for a while after a rotation.
    package var oldSecret: OldSecret?
    package private(set) var createdMilliseconds: Int64 = 0
    package private(set) var startSequence: Int64 = 0
    package var revision: Int64 = 1

    package init(id: String, appID: String, createdMilliseconds: Int64, startSequence: Int64) {
        self.id = id
        self.appID = appID
        self.createdMilliseconds = createdMilliseconds
        self.startSequence = startSequence
    }

    package struct OldSecret: Sendable, Equatable {
        package var secret: [UInt8] = []
        package var untilMilliseconds: Int64 = 0

        package init(secret: [UInt8] = [], untilMilliseconds: Int64 = 0) {
            self.secret = secret
            self.untilMilliseconds = untilMilliseconds
        }
    }

    package var consumer: EventConsumerID { EventConsumerID(appID: appID, kind: .webhook, name: id) }

    /// The keys that sign at a time, newest first.
    package func keys(atMilliseconds now: Int64) -> [[UInt8]] {
        [secret] + (oldSecret.flatMap { $0.untilMilliseconds > now ? [$0.secret] : nil } ?? [])
    }

    package var privateURL: String? { allowsPrivateAddresses ? url : nil }

    package var target: PushWebhook {
        PushWebhook(url: url, secret: secret, allowsPrivateAddresses: allowsPrivateAddresses)
    }

    /// The verdicts of delivered events; nil matches every event.
    package var verdictFilter: VerdictFilter? { verdict.flatMap { VerdictFilter($0) } }
}

extension WebhookEndpoint.OldSecret: SettingPart {
    package static let fields: [JSONField<WebhookEndpoint.OldSecret>] = [
        .secret("secret", \.secret), .member("until_ms", \.untilMilliseconds, .milliseconds),
    ]
}

extension WebhookEndpoint: SettingPart {
    package static let fields: [JSONField<WebhookEndpoint>] = [
        .init("id", \.id), .init("app", \.appID), .time("created_ms", \.createdMilliseconds),
        .url("url", \.url), .bool("allow_private", \.allowsPrivateAddresses),
        .optional("verdict", \.verdict, .choice(VerdictFilter.words)),
        .optional("type", \.type, .choice(EventKind.storedWords)),
        .optional("name", \.name, .text(longest: 512)),
        .optional("user", \.userID, .text(longest: 512)),
        .optional("claim", \.claim, .text(longest: 512)),
        .integer("batch_size", \.batchSize, 1...500),
        .optional("hold_days", \.holdDays, .integer(1...Int64(EventConsumerSettings.longestHold))),
        .part("paused", \.pause, standard: WayPause(), isOperators: false),
        .secret("secret", \.secret),
        .part("old_secret", \.oldSecret, standard: OldSecret(), isOperators: false),
        .own("start_seq", \.startSequence), .own("revision", \.revision),
    ]

    package init(id: String, appID: String, createdMilliseconds: Int64, kept: JSONObject) {
        self.init(id: id, appID: appID, createdMilliseconds: createdMilliseconds, startSequence: 0)
        read(kept)
    }

    package static var changeable: [JSONMember] {
        taken.filter { !$0.isReadOnly }.map { .may($0.name, $0.type) }
    }

    package func check() throws(GatewayError) {
        if let claim, ClaimFilter(claim) == nil {
            throw GatewayError(.invalid, "claim \(ClaimFilter.problem)")
        }
        try target.check()
    }
}
