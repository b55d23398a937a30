internal import CountersignCore
internal import CountersignTransport
internal import Foundation

extension BloomreachClient {
    /// The maximum length of a response: enough for an inbox of about ten thousand messages with text.
    private static let maximumAnswerBytes = 16 << 20
    /// The maximum number of fetches of the App Inbox if the customer changes during each fetch.
    private static let maximumRounds = 3

    // MARK: Content

    /// Fetches attributes of the customer.
    ///
    /// - Parameter queries: The attributes to fetch.
    /// - Returns: One result for each query, in the same order.
    /// - Throws: `CountersignError`.
    public func fetchAttributes(
        _ queries: [CustomerAttributeQuery]
    ) async throws(CountersignError) -> [CustomerAttribute] {
        let (project, customer, _) = present
        let members = try await request(
            .fetchAttributes,
            ["customer_ids": customer.json, "attributes": .array(queries.map(\.json))], of: project)
        let results = members["results"]?.array ?? []
        guard results.count == queries.count else {
            throw CountersignError(
                .notUnderstood, .fetchAttributes,
                "the server has \(results.count) results for \(queries.count) attributes")
        }
        return results.map(CustomerAttribute.init)
    }

    /// Fetches the project's consent categories.
    ///
    /// - Returns: The categories; may be empty.
    /// - Throws: `CountersignError`.
    public func fetchConsents() async throws(CountersignError) -> [ConsentCategory] {
        let members = try await request(.fetchConsents, [:])
        return (members["results"]?.array ?? []).compactMap(ConsentCategory.init)
    }

    /// Fetches the in-app messages for the customer.
    ///
    /// - Returns: The messages; may be empty.
    /// - Throws: `CountersignError`.
    public func fetchInAppMessages() async throws(CountersignError) -> [InAppMessage] {
        let (project, customer, _) = present
        let members = try await request(
            .fetchInAppMessages,
            ["customer_ids": customer.json, "device": .string(configuration.platform)], of: project)
        return (members["data"]?.array ?? []).compactMap(InAppMessage.init)
    }

    /// Asks the server to send a push notification to this device, to test delivery.
    ///
    /// - Parameter pushToken: The device's token for push notifications.
    /// - Throws: `CountersignError`.
    public func sendSelfCheck(pushToken: String) async throws(CountersignError) {
        guard !pushToken.isEmpty else {
            throw CountersignError(.invalidArgument, .sendSelfCheck, "there is no push token")
        }
        let (project, customer, _) = present
        var body: JSONObject = [
            "platform": .string(configuration.platform), "push_notification_id": .string(pushToken),
            "customer_ids": customer.json,
        ]
        body["application_id"] = configuration.applicationID.map { .string($0) }
        _ = try await request(.sendSelfCheck, body, of: project)
    }

    // MARK: App Inbox

    /// Fetches new messages of the App Inbox and returns them with the cached ones.
    ///
    /// If the server no longer has the sync token (410), the inbox is fetched again from the start, once. If the
    /// customer changes during the fetch, the inbox is fetched for the new customer, in up to three attempts.
    ///
    /// - Returns: The newest 10,000 messages, newest first. As in the vendor's SDK, expired ones too: see `expiresAt`.
    /// - Throws: `CountersignError`. With `advancedAuthEnabled`, no request is sent without a customer token.
    public func fetchAppInbox() async throws(CountersignError) -> [AppInboxMessage] {
        for _ in 1..<Self.maximumRounds {
            do {
                return try await fetchAppInboxOnce()
            } catch  where error.code == .customerChanged {
                continue
            }
        }
        return try await fetchAppInboxOnce()
    }

    /// The cached messages of this customer, newest first. Sends no request.
    public func cachedAppInbox() async -> [AppInboxMessage] {
        let owner = owner(of: customer.current.customer)
        return await withInbox { $0.messages(of: owner) } ?? []
    }

    private func fetchAppInboxOnce() async throws(CountersignError) -> [AppInboxMessage] {
        let (project, customer, generation) = present
        let owner = AppInboxCache.Owner(customerIDs: customer.identifiers, projectToken: project.token)
        let closed = CountersignError(.cancelled, .fetchAppInbox, "the client is closed")
        guard var fetch = await withInbox({ $0.begin(for: owner) }) else { throw closed }
        let members: JSONObject
        do {
            members = try await requestAppInbox(
                customer, of: project, generation: generation, syncToken: fetch.syncToken)
        } catch  where error.code == .gone && fetch.syncToken != nil {
            _ = await withInbox { $0.clear() }
            fetch.syncToken = nil
            members = try await requestAppInbox(customer, of: project, generation: generation, syncToken: nil)
        }
        let newToken = members["sync_token"]?.string
        let messages = (members["messages"]?.array ?? []).compactMap {
            AppInboxMessage(
                $0, customerIDs: owner.customerIDs, syncToken: newToken, projectToken: owner.projectToken)
        }
        // Compare the generation on the storage thread, which also clears the cache after a change of customer. So
        // messages of an earlier customer are never stored after the cache was cleared.
        let applied = await withInbox { [record = self.customer, fetch] inbox in
            record.current.generation == generation
                ? inbox.apply(messages, syncToken: newToken, fetch, for: owner) : nil
        }
        guard let applied else { throw closed }
        guard let all = applied else {
            throw CountersignError(
                .customerChanged, .fetchAppInbox,
                "the customer or the cached inbox has changed since the request; call again")
        }
        return all
    }

    private func requestAppInbox(
        _ customer: BloomreachCustomer, of project: BloomreachProject, generation: Int, syncToken: String?
    ) async throws(CountersignError) -> JSONObject {
        var body: JSONObject = ["customer_ids": customer.json]
        body["sync_token"] = syncToken.map { .string($0) }
        body["application_id"] = configuration.applicationID.map { .string($0) }
        return try await request(
            .fetchAppInbox, body, of: project,
            isForPresentCustomer: { self.customer.current.generation == generation })
    }

    /// Marks a message as read on the server, for the customer it was fetched for.
    ///
    /// - Parameter message: A fetched message.
    /// - Throws: `CountersignError`. `unknownMessage` if the message has no IDs or no sync token, or is another
    ///   project's: fetch the App Inbox first. `customerChanged` if the server rejects the token for a message of an
    ///   earlier customer.
    public func markAsRead(_ message: AppInboxMessage) async throws(CountersignError) {
        let project = project
        guard !message.customerIDs.isEmpty, let syncToken = message.syncToken,
            message.projectToken == project.token
        else {
            throw unknownMessage(message.id, "the message lacks ids or a sync token, or is another project's")
        }
        let ids = message.customerIDs
        _ = try await request(
            .markAppInboxAsRead,
            [
                "customer_ids": .object(JSONObject(ids.mapValues { .string($0) })),
                "message_ids": .array([.string(message.id)]), "sync_token": .string(syncToken),
            ], of: project, isForPresentCustomer: { self.customerIDs.isSame(as: ids) })
        let owner = AppInboxCache.Owner(customerIDs: ids, projectToken: project.token)
        _ = await withInbox { $0.markAsRead(message.id, of: owner) }
    }

    /// As `markAsRead(_:)`, for a message of the current customer.
    ///
    /// - Parameter id: The message's ID.
    /// - Throws: `CountersignError`; `unknownMessage` if the message was not fetched.
    public func markAsRead(messageID id: String) async throws(CountersignError) {
        let owner = owner(of: customer.current.customer)
        guard let message = await withInbox({ $0.message(id, of: owner) }) ?? nil else {
            throw unknownMessage(id, "the message was not fetched for this customer")
        }
        try await markAsRead(message)
    }

    private func unknownMessage(_ id: String, _ reason: String) -> CountersignError {
        log?.write(.warning, "Unable to mark message \(id) as read, try to fetch AppInbox", [:])
        return CountersignError(
            .unknownMessage, .markAppInboxAsRead, reason + "; fetch the App Inbox first; nothing was sent")
    }

    private func owner(of customer: BloomreachCustomer) -> AppInboxCache.Owner {
        AppInboxCache.Owner(customerIDs: customer.identifiers, projectToken: project.token)
    }

    private func withInbox<Result: Sendable>(
        _ body: @escaping @Sendable (AppInboxCache) -> Result
    ) async -> Result? {
        try? await storage.run { [inbox] _ in body(inbox) }
    }

    // MARK: Requests

    /// `given` is the project to query; nil for the current one. `isForPresentCustomer` is called after a customer or
    /// signed-user token was rejected. If it returns false, the error is `customerChanged`.
    private func request(
        _ endpoint: BloomreachEndpoint, _ body: JSONObject, of given: BloomreachProject? = nil,
        isForPresentCustomer: @Sendable () -> Bool = { true }
    ) async throws(CountersignError) -> JSONObject {
        let project = given ?? self.project
        guard let url = endpoint.url(of: project) else {
            throw CountersignError(.invalidArgument, endpoint, "the project's base URL does not work")
        }
        let credential = try await credential(for: endpoint, project: project)
        let ids = body["customer_ids"]?.object?.compactMapValues(\.string) ?? [:]
        let userToken = try await userToken(for: endpoint, ids: Dictionary(ids))
        let request = TransportRequest(
            url: url, headers: headers, body: JSONValue.object(body).bytes,
            timeout: configuration.requestTimeout, maximumResponseBytes: Self.maximumAnswerBytes)
        let response: TransportResponse
        do {
            response = try await queries.send(
                Credential(.field("X-Countersign-Signature"), token: userToken)
                    .applied(to: credential.applied(to: request)))
        } catch {
            let code: CountersignError.Code = error.code == .cancelled ? .cancelled : .unreachable
            throw CountersignError(code, endpoint, error.description)
        }
        log?(.debug, "answer", ["status": "\(response.status)", "endpoint": endpoint.rawValue])
        do {
            let readable = [credential.token, userToken].reduce(response) { $0.redacting($1?.rawValue) }
            return try BloomreachAnswer(readable).result(of: endpoint, now: pipeline.clock.now)
        } catch {
            let isPrivate = takesCustomerToken(endpoint)
            guard error.code == .authorizationRefused, isPrivate || userToken != nil else { throw error }
            (isPrivate ? customerTokens : userTokens).tokenRejected()
            throw error.refined(
                isForPresentCustomer: isForPresentCustomer(),
                isOfAnotherCustomer: isPrivate && credential.token?.vouches(for: Dictionary(ids)) == false)
        }
    }

    /// The signed-user token. Nil without a provider, a token or an ID besides the cookie, or with a customer token.
    private func userToken(
        for endpoint: BloomreachEndpoint, ids: [String: String]
    ) async throws(CountersignError) -> SignedToken? {
        guard configuration.userTokenProvider != nil, !takesCustomerToken(endpoint),
            ids.keys.contains(where: { $0 != BloomreachCustomer.cookieName })
        else { return nil }
        do {
            return try await userTokens.credential(for: endpoint, of: customerIDs, log: nil).token
        } catch  where error.code == .noCustomerToken {
            return nil
        }
    }

    private func takesCustomerToken(_ endpoint: BloomreachEndpoint) -> Bool {
        configuration.advancedAuthEnabled && endpoint.takesCustomerToken
    }

    private func credential(
        for endpoint: BloomreachEndpoint, project: BloomreachProject
    ) async throws(CountersignError) -> Credential {
        if takesCustomerToken(endpoint) {
            return try await customerTokens.credential(for: endpoint, of: customerIDs, log: log)
        }
        guard let key = SignedToken.accessToken(project.apiKey) else {
            throw CountersignError(.authorizationRefused, endpoint, "there is no API key")
        }
        return Credential(.scheme("Token"), token: key)
    }
}
