package import CountersignCore
internal import Foundation

/// An external stream to which all events of an app are published, once and in the order of storing.
package struct StreamSettings: Sendable, Equatable {
    package private(set) var appID = ""
    /// 1 to 64 of `A-Z a-z 0-9 . _ -`, unique within the app.
    package private(set) var name = ""
    /// Comma-separated addresses of NATS servers, `nats://` or `tls://`.
    package var servers = ""
    package var stream = ""
    package var subject = SubjectTemplate.standard
    /// The replicas of the stream if the gateway creates it: 1, 3 or 5.
    package var replicas = 1
    /// The path of the CA certificate of the servers; nil uses the system's CAs.
    package var authorityFile: String?
    /// The path of a credentials file with a user's JWT and NKEY seed, as NATS' tools write it.
    package var credentialsFile: String?
    /// The public part of an NKEY. ``seedFile`` holds its seed.
    package var nkey: String?
    package var seedFile: String?
    /// The extra days for which retention keeps unpublished events; nil keeps none.
    package var holdDays: Int?
    /// The age, in seconds, of the oldest unpublished event that triggers the app's alert webhook.
    package var alertSeconds = 600
    package var pause: WayPause?
    package private(set) var createdMilliseconds: Int64 = 0
    /// Publishing starts after this sequence number. It is set at creation and when an operator moves the position.
    package var startSequence: Int64 = 0
    /// Milliseconds since 1970 of creation or the last move; increases with each move. Published messages contain
    /// the epoch, so that a position from an older one is ignored.
    package var epoch: Int64 = 0
    package var revision: Int64 = 1

    package init(name: String, appID: String, createdMilliseconds: Int64, startSequence: Int64) {
        self.name = name
        self.appID = appID
        self.createdMilliseconds = createdMilliseconds
        self.startSequence = startSequence
        epoch = createdMilliseconds
    }

    package var consumer: EventConsumerID { EventConsumerID(appID: appID, kind: .stream, name: name) }

    package var key: String { appID + "/" + name }

    package var addresses: [String] { servers.split(separator: ",").map(String.init) }

    package var template: SubjectTemplate? { SubjectTemplate(subject, appID: appID) }
}

extension StreamSettings: SettingPart {
    package static let fields: [JSONField<StreamSettings>] = [
        .init("app", \.appID), .init("name", \.name), .time("created_ms", \.createdMilliseconds),
        .text("servers", \.servers, longest: 2_048), .text("stream", \.stream, longest: 255),
        .text("subject", \.subject, longest: SubjectTemplate.longest),
        .integer("replicas", \.replicas, 1...5),
        .optional("ca_file", \.authorityFile, .text(longest: 1_024)),
        .optional("credentials_file", \.credentialsFile, .text(longest: 1_024)),
        .optional("nkey", \.nkey, .text(longest: 128)),
        .optional("nkey_seed_file", \.seedFile, .text(longest: 1_024)),
        .optional("hold_days", \.holdDays, .integer(1...Int64(EventConsumerSettings.longestHold))),
        .integer("alert_seconds", \.alertSeconds, 10...2_592_000),
        .part("paused", \.pause, standard: WayPause(), isOperators: false),
        .own("start_seq", \.startSequence), .own("epoch", \.epoch),
        .own("revision", \.revision),
    ]

    package init(name: String, appID: String, createdMilliseconds: Int64, kept: JSONObject) {
        self.init(name: name, appID: appID, createdMilliseconds: createdMilliseconds, startSequence: 0)
        read(kept)
    }

    package static var settable: [JSONMember] {
        taken.filter { !$0.isReadOnly }.map { member in
            ["servers", "stream"].contains(member.name)
                ? .must(member.name, member.type) : .may(member.name, member.type)
        }
    }

    package func check() throws(GatewayError) {
        func reject(_ reason: String) throws(GatewayError) { throw GatewayError(.invalid, reason) }
        if !EventConsumerID.isName(name) || !GivenName.isUsable(name) {
            try reject(
                "a stream's name must be 1 to 64 of the characters A-Z a-z 0-9 . _ -, and \(GivenName.rule)")
        }
        if !(1...8 ~= addresses.count) || !addresses.allSatisfy(Self.isAddress) {
            try reject(
                "servers must be 1 to 8 of nats://HOST:PORT or tls://HOST:PORT, separated by commas, without a user name "
                    + "or password: those come from a credentials file or an NKEY")
        }
        let isStream = stream.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !#".*>/\"#.utf8.contains($0) }
        if !isStream || stream.isEmpty {
            try reject("a stream's name must be 1 to 255 printable characters without space . * > / \\")
        }
        if template == nil {
            try reject(
                "subject must be at most \(SubjectTemplate.longest) bytes: words of A-Z a-z 0-9 _ - and {app}, {type}, "
                    + "{user}, separated by dots, beginning with a word that does not begin with _")
        }
        if ![1, 3, 5].contains(replicas) { try reject("replicas must be 1, 3 or 5") }
        if (nkey == nil) != (seedFile == nil) {
            try reject("nkey and nkey_seed_file belong together; give both or neither")
        }
        if credentialsFile != nil, nkey != nil {
            try reject("give either credentials_file, or nkey and nkey_seed_file")
        }
        for file in [authorityFile, credentialsFile, seedFile].compactMap(\.self) where !file.hasPrefix("/") {
            try reject("files must be absolute paths on the gateway's machine")
        }
        if let nkey, !nkey.utf8.allSatisfy({ 0x30...0x5A ~= $0 }) || !nkey.hasPrefix("U") {
            try reject("nkey must be the public key of a user, which begins with U")
        }
    }

    private static func isAddress(_ text: String) -> Bool {
        guard let parts = URLComponents(string: text), ["nats", "tls"].contains(parts.scheme) else {
            return false
        }
        return parts.host?.isEmpty == false && parts.hasUsablePort && parts.user == nil
            && parts.password == nil
            && parts.path.isEmpty
            && parts.query == nil && parts.fragment == nil
    }
}
