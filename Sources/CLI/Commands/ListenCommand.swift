internal import CountersignCore
internal import Foundation
internal import GatewayModel
internal import GatewayStorage

enum ListenCommand {
    private static let url = Flag(
        "forward-to", .text("URL"),
        help: "deliver here: http://localhost:3000/hook; private networks are allowed")
    private static let secretFile = Flag(
        "secret-file", .path("FILE"),
        help:
            "sign with this file's secret, or with $COUNTERSIGN_WEBHOOK_SECRET; by default with a new one, which is printed"
    )

    static let command = Command(
        "listen", summary: "Deliver an app's events to an address on this machine, signed as a webhook's",
        details: """
            For developing a webhook's receiver without a public address. Prints the secret to verify with, and a line for
            each request: time, status, milliseconds, and the event or the number of events. A request not answered with
            2xx is retried until it is, and later events wait. By default it begins after the newest event. Ctrl-C prints the
            position to continue from, with status 0.
            A server needs a token with the scope reader for the app. On a data directory it finds the running gateway and
            creates this token for itself, which it deletes at the end.
            """,
        positionals: [.app],
        flags: [url, secretFile] + Flag.filter + [WebhookCommand.batch] + Flag.start + [.json] + Flag.target,
        examples: [
            "A receiver on this machine": "countersign listen shop --forward-to http://localhost:3000/hook",
            "Purchases of the last day, one at a time":
                "countersign listen shop --forward-to http://localhost:3000/hook --name 'Order Completed' --time 1d --batch-size 1",
        ]
    ) { invocation in
        let given = try secret(invocation)
        let secret = given ?? PushWebhook.newSecret()
        let options = Listen.Options(
            app: invocation.app, webhook: try webhook(invocation, secret), start: try invocation.start(),
            filter: try invocation.filter(),
            batchSize: try invocation.integer(of: WebhookCommand.batch) ?? 100,
            printsJSON: invocation.printsJSON)
        let connection = try await connection(invocation)
        let listen = Listen(options, admin: connection.admin, io: invocation.io)
        let (result, isCancelled) = await StopSignals().cancelling {
            if given == nil {
                try invocation.printSecret(
                    "secret", of: ["secret": .string(secret)],
                    notice: "The secret for the receiver, new for each run unless you give one:")
            }
            try await listen.run()
        }
        await connection.close()
        if await listen.isConnected || isCancelled { invocation.io.say(await listen.summary) }
        if isCancelled { return }
        do {
            try result.get()
        } catch let error as CommandError where error.code == .notAuthorized {
            throw CommandError(
                .notAuthorized, error.reason,
                hint:
                    "a token for it: countersign admin token create --name listen --scopes reader --app \(invocation.app)"
            )
        }
    }

    private static func webhook(_ invocation: Invocation, _ secret: String) throws -> PushWebhook {
        guard let text = try invocation.value(of: url), let parts = URLComponents(string: text),
            ["http", "https"].contains(parts.scheme?.lowercased()),
            parts.host?.isEmpty == false, parts.user == nil, parts.fragment == nil
        else {
            throw CommandError(
                .usage, "--forward-to needs a URL of http or https, without a user name or fragment",
                hint: "such as http://localhost:3000/hook")
        }
        guard let key = WebhookSignature.key(secret) else {
            throw CommandError(
                .usage, "the secret must be whsec_ and the base64 of 24 to 64 bytes",
                hint: "leave --secret-file and $COUNTERSIGN_WEBHOOK_SECRET out to get a new one")
        }
        return PushWebhook(url: text, secret: key, allowsPrivateAddresses: true)
    }

    private static func secret(_ invocation: Invocation) throws -> String? {
        if let path = try invocation.value(of: secretFile) { return try invocation.secret(ofFile: path) }
        return invocation.io.variable("COUNTERSIGN_WEBHOOK_SECRET")
    }

    private static func connection(_ invocation: Invocation) async throws -> Tail.Connection {
        if let remote = try invocation.remoteAdmin() { return Tail.Connection(admin: remote) }
        return try await Tail.Connection(
            toGatewayOn: try invocation.storageLocation(),
            certificateAuthorityFile: try invocation.value(of: .certificateAuthorityFile),
            allowsPlainHTTP: invocation.isSet(.allowPlainHTTP), tokenName: "listen", scope: AdminToken.reader,
            app: invocation.app)
    }
}
