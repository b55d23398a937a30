package import CountersignCore

/// Where an app's events are delivered to, and which of them.
package struct WebhookEndpoint: Sendable, Equatable {
    /// `wh_` and 26 letters and digits or so; never given twice.
    package private(set) var id = ""
    package private(set) var appID = ""
    package var url = ""
    /// True when the address may be one of a private network, or of this machine.
    package var allowsPrivateAddresses = false
    /// Which events are delivered. What is nil is not looked at.
    package var verdict: String?
    package var type: String?
    package var name: String?
    package var userID: String?
    /// The most events of one delivery.
    package var batchSize = 100
    /// Nil while it is delivered to.
    package var pause: Pause?
    /// The key that deliveries are signed with.
    package var secret: [UInt8] = []
    /// The key that it replaces, which signs too for a while.
    package var oldSecret: OldSecret?
    /// Milliseconds since 1970 when it was made.
    package private(set) var createdMilliseconds: Int64 = 0
    /// The number of the event after which it begins.
    package private(set) var startSequence: Int64 = 0
    /// Rises with every change.
    package var revision: Int64 = 1

    package init(id: String, appID: String, createdMilliseconds: Int64, startSequence: Int64) {
        self.id = id
        self.appID = appID
        self.createdMilliseconds = createdMilliseconds
        self.startSequence = startSequence
    }

    /// Why nothing is delivered, since when, and who wants it so.
    package struct Pause: Sendable, Equatable {
        package enum Reason: String, Sendable, TextEnum {
            /// Somebody has asked for it.
            case requested
            /// The endpoint has answered 410: it wants no more (RFC 9110, section 15.5.11).
            case gone
            /// Every attempt of several days has failed.
            case failing
        }

        package var reason = Reason.requested
        package var by = ""
        package var atMilliseconds: Int64 = 0

        package init(_ reason: Reason = .requested, by: String = "", atMilliseconds: Int64 = 0) {
            self.reason = reason
            self.by = by
            self.atMilliseconds = atMilliseconds
        }
    }

    /// A key that signs until a time, in milliseconds since 1970.
    package struct OldSecret: Sendable, Equatable {
        package var secret: [UInt8] = []
        package var untilMilliseconds: Int64 = 0

        package init(secret: [UInt8] = [], untilMilliseconds: Int64 = 0) {
            self.secret = secret
            self.untilMilliseconds = untilMilliseconds
        }
    }

    /// The keys that sign at a time, newest first.
    package func keys(atMilliseconds now: Int64) -> [[UInt8]] {
        [secret] + (oldSecret.flatMap { $0.untilMilliseconds > now ? [$0.secret] : nil } ?? [])
    }

    /// The URL, if its address may be private.
    package var privateURL: String? { allowsPrivateAddresses ? url : nil }

    /// Where a delivery goes.
    package var target: PushWebhook {
        PushWebhook(url: url, secret: secret, allowsPrivateAddresses: allowsPrivateAddresses)
    }

    /// Which events it wants. What is nil is not looked at.
    package var verdictFilter: VerdictFilter? { verdict.flatMap { VerdictFilter($0) } }
}

extension WebhookEndpoint.Pause: SettingPart {
    package static let fields: [JSONField<WebhookEndpoint.Pause>] = [
        .choice("reason", \.reason, unreadable: .requested), .text("by", \.by, longest: 512),
        .member("at_ms", \.atMilliseconds, .milliseconds),
    ]
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
        .integer("batch_size", \.batchSize, 1...500),
        .part("paused", \.pause, standard: Pause(), isOperators: false),
        .secret("secret", \.secret),
        .part("old_secret", \.oldSecret, standard: OldSecret(), isOperators: false),
        .own("start_seq", \.startSequence), .own("revision", \.revision),
    ]

    /// Takes over what was kept.
    package init(id: String, appID: String, createdMilliseconds: Int64, kept: JSONObject) {
        self.init(id: id, appID: appID, createdMilliseconds: createdMilliseconds, startSequence: 0)
        read(kept)
    }

    /// What a change by an operator may hold; all of it may be missing.
    package static var changeable: [JSONMember] {
        taken.filter { !$0.isReadOnly }.map { .may($0.name, $0.type) }
    }

    /// Throws `invalid` for a URL that nothing is delivered to.
    package func check() throws(GatewayError) { try target.check() }
}
