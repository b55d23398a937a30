internal import CountersignCore
internal import CountersignJSON
internal import GatewayHTTP
internal import GatewayModel

/// Requests a test push notification for the client from the project's webhook.
struct BloomreachSelfCheck {
    /// The maximum size of a platform's name and of a push token, in bytes.
    static let longestText = 4_096

    let call: BloomreachCall
    let webhooks: WebhookSender

    func outcome() throws(HTTPResponse) -> HTTPOutcome {
        let (identifiers, data) = try call.body {
            root throws(HTTPResponse) -> ([CustomerIdentifier], JSONValue) in
            var members: JSONObject = ["project_id": .string(call.app.project.settings.token)]
            for name in ["platform", "push_notification_id"] as [StaticString] {
                guard let text = root[name]?.utf8, (1...Self.longestText).contains(text.count) else {
                    throw call.reject("Field '\(name)' must be a string of 1 to \(Self.longestText) bytes.")
                }
                members["\(name)"] = .string(String(decoding: text, as: UTF8.self))
            }
            let identifiers = try call.identifiers(root)
            members["customer_ids"] = root["customer_ids"]?.value ?? [:]
            if let application = root["application_id"]?.string {
                members["application_id"] = .string(application)
            }
            return (identifiers, .object(members))
        }
        _ = try call.admit(identifiers)
        guard let webhook = call.app.project.settings.webhook else {
            // Clients show the text of a 409, and report only a 2xx as success.
            throw BloomreachAnswer.failure(
                409,
                "this project has no push webhook; set one, which then receives a request to send the notification",
                call.request)
        }
        let request = call.request
        let event: JSONValue = [
            "type": "push.self_check",
            "timestamp": .string(RFC3339.text(milliseconds: request.receivedMilliseconds)), "data": data,
        ]
        let trace = request.trace
        return .waiting({ done in
            webhooks.send(
                event.bytes, id: "msg_" + UUIDv7.make(), to: webhook, trace: trace, completion: done)
        }) { outcome in
            switch outcome {
            case .delivered: BloomreachAnswer.success()
            case .rejected(let reason):
                BloomreachAnswer.failure(502, "the push webhook was not reached: \(reason)", request)
            case .overloaded:
                BloomreachAnswer.failure(
                    503, "too many deliveries to push webhooks are running; try again later", request
                ).with("Retry-After", "10")
            }
        }
    }
}
