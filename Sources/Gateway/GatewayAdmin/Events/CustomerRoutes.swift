internal import CountersignCore
internal import GatewayHTTP
internal import GatewayIngest
internal import GatewayModel
internal import GatewayStorage

struct CustomerRoutes: Sendable {
    let log: any EventLog
    let records: any CustomerRecordStore
    let families: TokenFamilyDirectory
    let deliveries: @Sendable () throws(GatewayError) -> DeliveryStore
    let flush: @Sendable () -> Void
    let index = PseudonymIndex()

    var all: [AdminRoute] {
        [
            AdminRoute(
                "GET", "/apps/{app}/customers/{id}", .operator, "Show what is stored about a customer",
                query: [Self.kind], .json(Self.customer.shape), answer: show),
            AdminRoute(
                "DELETE", "/apps/{app}/customers/{id}", .operator,
                "Delete a customer's profile, events, samples, App Inbox messages and sessions",
                query: [Self.kind], queueClass: .backup, .json(Self.deletion.shape), answer: delete),
        ]
    }

    private static let kind = JSONMember.may("id_name", .text(longest: 128))

    private static let deletion = AnswerShape<(found: CustomerDeletion, messages: Int, sessions: Int)>(
        .init("profile") { $0.found.hasProfile }, .init("events") { $0.found.events },
        .init("samples") { $0.found.samples }, .init("inbox_messages") { $0.messages },
        .init("sessions") { $0.sessions })

    private static let nobody = AdminProblem.notFound("the app stores nothing about this customer")

    /// The id in the path. A `registered` id may be a pseudonym.
    private func identifier(_ call: AdminCall, of appID: String) throws -> CustomerIdentifier {
        let name = call.query("id_name") ?? CustomerIdentifier.hardName
        var value = call[1]
        if name == CustomerIdentifier.hardName {
            value = try call.user(named: call[1], of: appID, in: index) { last, isEnough in
                try log.users(of: appID, after: last, isEnough)
            }
        }
        return CustomerIdentifier(name: name, value: value)
    }

    private func show(_ call: AdminCall) throws -> HTTPResponse {
        let app = try call.app()
        let identifier = try identifier(call, of: app.id)
        try call.noteReading("customer.show", try pseudonym(identifier, call, of: app.id), app: app.id)
        guard let record = try records.find(identifier, in: app.id) else { throw Self.nobody }
        return call.answer(Self.customer.json(record))
    }

    private func delete(_ call: AdminCall) throws -> HTTPResponse {
        let app = try call.app()
        let identifier = try identifier(call, of: app.id)
        let record = try records.find(identifier, in: app.id)
        let identifiers = record?.identifiers ?? [identifier]
        flush()
        let messages = try call.directory.projects.removeInboxMessages(to: identifiers, of: app.id)
        // `forget` revokes the tokens first, so that no request with them adds data after the deletion.
        let ended = try identifiers.filter(\.isHard).reduce(0) {
            $0 + (try families.forget($1.value, in: app.id))
        }
        // Webhook responses may outlive the record. Without a record, the id may be wrong, so only whole words match.
        let endpoints = try call.directory.webhooks.all(of: app.id).map(\.id)
        let answers = try deliveries().clearAnswers(
            with: identifiers.map(\.value), asWords: record == nil,
            of: endpoints + [DeliveryRecord.alerts(of: app.id)])
        // `records.delete` is last, because it deletes the links between the person's ids.
        let deletion = try records.delete(identifier, in: app.id)
        guard !deletion.isEmpty || ended + messages + answers > 0 else { throw Self.nobody }
        let counts = Self.deletion.json((deletion, messages, ended))
        try call.directory.auditLog.note(
            "customer.delete", try pseudonym(identifier, call, of: app.id), app: app.id, after: counts)
        return call.answer(counts)
    }

    /// The audit log must not retain a customer's id after the customer's data is deleted.
    private func pseudonym(
        _ identifier: CustomerIdentifier, _ call: AdminCall, of appID: String
    ) throws -> String {
        let pseudonyms = Pseudonyms(key: try call.directory.pseudonymKey(), appID: appID)
        return identifier.isHard ? pseudonyms.user(identifier.value) : pseudonyms.anonymous(identifier.value)
    }

    // MARK: Shapes

    private static let customer = AnswerShape<CustomerRecord>(
        named: "Customer", .list("ids", identifier, \.identifiers),
        .list("properties", property, \.properties),
        .init("more_properties", \.hasMoreProperties), .time("created_ms", \.createdMilliseconds),
        .time("seen_ms", \.seenMilliseconds), .init("events", \.events))

    private static let identifier = AnswerShape<CustomerIdentifier>(
        .init("name", \.name), .init("value", \.value))

    private static let property = AnswerShape<CustomerRecord.Property>(
        .init("name", \.name), .init("value", .any, \.value), .time("updated_ms", \.updatedMilliseconds))
}
