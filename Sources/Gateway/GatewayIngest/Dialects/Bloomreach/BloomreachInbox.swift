internal import CountersignCore
internal import CountersignJSON
internal import GatewayHTTP
internal import GatewayModel

struct BloomreachInbox {
    let call: BloomreachCall
    let customers: any CustomerStore

    static let maximumReads = 1_000

    func fetch() throws(HTTPResponse) -> HTTPOutcome {
        let (identifiers, syncToken) = try call.body {
            root throws(HTTPResponse) -> ([CustomerIdentifier], String?) in
            (try call.requiredIdentifiers(root), try token(root))
        }
        let caller = try call.admit(identifiers)
        let request = call.request
        let reading = Reading(
            app: call.app, caller: caller, syncToken: syncToken, customers: customers,
            nowMilliseconds: request.receivedMilliseconds)
        return call.path.read(reading.messages) { result in
            switch result {
            case .success(let members?): BloomreachAnswer.success(members)
            // Current clients recognise this message, clear their cache and fetch once without a token.
            case .success(nil): BloomreachAnswer.failure(410, "invalid sync token", request)
            case .failure(let failure): BloomreachAnswer.unreadable(failure, request)
            }
        }
    }

    func markAsRead() throws(HTTPResponse) -> HTTPOutcome {
        let (identifiers, messageIDs) = try call.body {
            root throws(HTTPResponse) -> ([CustomerIdentifier], [String]) in
            _ = try token(root)
            return (try call.requiredIdentifiers(root), try self.messageIDs(root))
        }
        let caller = try call.admit(identifiers)
        let request = call.request
        var change: CustomerChange?
        // Unknown message ids are ignored, because a client may still show deleted messages. All message ids are
        // ignored if the request has a hard id without a token for it, because an app's key can be extracted.
        let isProven = caller.authenticated.contains(where: \.isHard)
        let isClosed = !isProven && caller.identifiers.contains(where: \.isHard)
        let known = messageIDs.filter {
            !isClosed && call.app.project.inbox.contains($0, forHardIDs: isProven)
        }
        if !known.isEmpty {
            change = caller.change(atMilliseconds: request.receivedMilliseconds)
            change?.readMessageIDs = known
        }
        let batch = EventBatch(
            appID: call.app.id, receivedMilliseconds: request.receivedMilliseconds, body: [], events: [],
            customers: change.map { [$0] } ?? [], proof: request.proof(dialect: "bloomreach"))
        return call.path.store(
            batch, for: request, restricted: { BloomreachAnswer.overLimit($0, request) }
        ) { result in
            switch result {
            case .success: BloomreachAnswer.success()
            case .failure(let failure): BloomreachAnswer.failure(failure, request)
            }
        }
    }

    private func token(_ root: JSONNode) throws(HTTPResponse) -> String? {
        guard let node = root["sync_token"], !node.isNull else { return nil }
        guard let text = node.string else { throw call.reject("Field 'sync_token' must be a string.") }
        guard text.utf8.count <= 256 else { return "" }
        return text.isEmpty ? nil : text
    }

    private func messageIDs(_ root: JSONNode) throws(HTTPResponse) -> [String] {
        guard let list = root["message_ids"], list.kind == .array else {
            throw call.reject("Field 'message_ids' must be an array of strings.")
        }
        var ids: [String] = []
        var count = 0
        for element in list.elements {
            guard let id = element.string, count < Self.maximumReads else {
                throw call.reject(
                    "Field 'message_ids' must be an array of at most \(Self.maximumReads) strings.")
            }
            count += 1
            // No message has a longer id.
            if id.utf8.count <= 128 { ids.append(id) }
        }
        return ids
    }

    private struct Reading: Sendable {
        let app: AdmittedApp
        let caller: BloomreachCaller
        let syncToken: String?
        let customers: any CustomerStore
        let nowMilliseconds: Int64

        /// The members of the response; nil for an invalid sync token.
        @Sendable func messages() throws -> [(name: String, json: [UInt8])]? {
            let inbox = app.project.inbox
            let (customer, own) = try customers.open(caller.readable, appID: app.id)
            // An update of the customer may not be stored yet, so the ids of the request are added.
            var identifiers = try customer.map { try customers.identifiers(of: $0) } ?? []
            for identifier in own + caller.authenticated where !identifiers.contains(identifier) {
                identifiers.append(identifier)
            }
            var since: InboxSyncToken?
            if let syncToken {
                guard let token = InboxSyncToken(syncToken), token.epoch == inbox.epoch,
                    token.revision <= inbox.revision
                else { return nil }
                if token.customerID == customer?.id {
                    // If the ids differ, the sync starts over, because the new ids may have older messages.
                    if token.audience == InboxSyncToken.audience(of: identifiers) { since = token }
                } else if let id = token.customerID {
                    // The sync also starts over if the token's customer was merged into `customer` or is not
                    // readable for this request. A token of an unrelated customer is invalid.
                    let isClosed = customer == nil && caller.readable.count < caller.identifiers.count
                    guard try isClosed || customer.map({ try customers.isMerged(id, into: $0) }) == true
                    else { return nil }
                }
            }
            let reads = try customer.map { try customers.inboxReads(of: $0) } ?? []
            let isRead = BytewiseSet(reads.map(\.messageID))
            let isReadSince = BytewiseSet(
                reads.filter { $0.sequence > since?.readSequence ?? 0 }.map(\.messageID))
            var body = Array("[".utf8)
            for message in inbox.messages(for: identifiers, atMilliseconds: nowMilliseconds)
            where message.revision > since?.revision ?? 0 || isReadSince.contains(message.id) {
                if body.count > 1 { body.append(UInt8(ascii: ",")) }
                Self.write(message, isRead: isRead.contains(message.id), to: &body)
            }
            body.append(UInt8(ascii: "]"))
            let token = InboxSyncToken(
                epoch: inbox.epoch, revision: inbox.revision, readSequence: reads.last?.sequence ?? 0,
                customerID: customer?.id, identifiers: identifiers)
            return [("messages", body), ("sync_token", JSONValue.string(token.text).bytes)]
        }

        private static func write(_ message: InboxMessage, isRead: Bool, to output: inout [UInt8]) {
            output.append(contentsOf: #"{"id":"#.utf8)
            JSONValue.write(message.id, to: &output)
            output.append(contentsOf: #","type":"\#(message.type)","is_read":\#(isRead),"create_time":"#.utf8)
            output.append(contentsOf: "\(Milliseconds(message.createdMilliseconds).seconds)".utf8)
            if let expires = message.expiresMilliseconds {
                output.append(contentsOf: ",\"expire_time\":\(Milliseconds(expires).seconds)".utf8)
            }
            output.append(contentsOf: #","content":"#.utf8)
            output.append(contentsOf: message.content)
            output.append(UInt8(ascii: "}"))
        }
    }
}
