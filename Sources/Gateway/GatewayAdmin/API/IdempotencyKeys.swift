internal import CountersignCore
internal import CountersignCrypto
internal import GatewayHTTP
internal import GatewayModel
internal import GatewayStorage

/// Stores responses by their `Idempotency-Key`, so that a client that lost a response can repeat the request
/// (draft-ietf-httpapi-idempotency-key-header-07).
///
/// Responses may contain secrets. A single gateway keeps them in memory, and a restart deletes them. Gateways with a
/// shared database store them encrypted. They store an entry before they run a request, so that an interrupted request
/// is not run again under its key. Rejections are not stored, so a corrected request can reuse the key.
final class IdempotencyKeys: Sendable {
    private static let capacity = 1_000
    private static let lifetimeMilliseconds: Int64 = 86_400_000

    private let entries = Lock<BytewiseDictionary<IdempotencyEntry>>([:])
    private let cluster: (any Cluster)?

    init(cluster: (any Cluster)?) {
        self.cluster = cluster
    }

    /// Returns the stored response to the same request of the same caller with the same key. Otherwise runs the
    /// request. Throws 422 for a malformed key or the key of another request. Throws 409 if another gateway runs the
    /// first request, or if that request was interrupted. Also throws `storage` and the errors of `run`.
    func response(
        to request: AdminRequest, _ route: AdminOperation, of identity: AdminIdentity, at milliseconds: Int64,
        run: () throws -> HTTPResponse
    ) throws -> HTTPResponse {
        guard route.takesIdempotencyKey, let key = request.idempotencyKey else { return try run() }
        guard (1...255).contains(key.utf8.count) else {
            throw AdminProblem(422, "invalid", "Idempotency-Key must have 1 to 255 bytes")
        }
        // A new user must not get the responses of a deleted user of the same name.
        let name = identity.uniqueName + key
        var entry = IdempotencyEntry(
            caller: identity.uniqueName, digest: Self.digest(request, route), milliseconds: milliseconds)
        if let known = try state(of: name, orRecord: entry) {
            return try Self.replay(known, digest: entry.digest)
        }
        let response: HTTPResponse
        do {
            response = try run()
        } catch {
            // After a storage error, a record in the shared database remains, because the effect is unknown.
            let isRejection =
                error is AdminProblem || (error as? GatewayError).map { $0.code != .storage } == true
            if isRejection { store(nil, as: name) }
            throw error
        }
        entry.response = response
        store(entry, as: name)
        return response
    }

    private static func replay(_ known: IdempotencyEntry, digest: [UInt8]) throws -> HTTPResponse {
        guard known.digest == digest else {
            throw AdminProblem(
                422, "idempotency_key_reused",
                "this Idempotency-Key was already used for another request; each request needs its own")
        }
        guard let response = known.response else {
            var problem = AdminProblem(
                409, "idempotency_key_in_use",
                "the first request with this Idempotency-Key has not been answered yet; try again, and if that does not help, its "
                    + "gateway has stopped: check whether it took effect, and use another key")
            problem.retryAfterSeconds = 1
            throw problem
        }
        return response.with("Idempotency-Replayed", "true")
    }

    /// Stores the entry of a request, or deletes its record with nil. If this fails, the request remains recorded
    /// without a response.
    private func store(_ entry: IdempotencyEntry?, as name: String) {
        if let cluster {
            let note = Self.note(name)
            try? cluster.change([note]) { $0[note] = entry?.note }
        } else if let entry {
            entries.withLock { Self.add(entry, as: name, to: &$0) }
        }
    }

    /// Returns the stored entry of a name. Without an entry, records the request for other gateways.
    private func state(
        of name: String, orRecord asked: IdempotencyEntry
    ) throws(GatewayError) -> IdempotencyEntry? {
        func isKept(_ entry: IdempotencyEntry) -> Bool {
            asked.milliseconds - entry.milliseconds < Self.lifetimeMilliseconds
        }
        guard let cluster else {
            return entries.withLock { $0[name] }.flatMap { isKept($0) ? $0 : nil }
        }
        let note = Self.note(name)
        return try cluster.change([note]) { notes in
            if let known = notes[note].flatMap(IdempotencyEntry.init(note:)), isKept(known) { return known }
            notes[note] = asked.note
            return nil
        }
    }

    private static func add(
        _ entry: IdempotencyEntry, as name: String, to entries: inout BytewiseDictionary<IdempotencyEntry>
    ) {
        if entries.count >= capacity {
            entries = entries.filter {
                abs(entry.milliseconds - $0.value.milliseconds) < lifetimeMilliseconds
            }
            // Deletes the oldest entry of the caller with the most entries. Callers with fewer entries lose none.
            var counts: BytewiseDictionary<Int> = [:]
            for entry in entries.values { counts[entry.caller, default: 0] += 1 }
            let most = counts.values.max()
            let oldest = entries.filter { counts[$0.value.caller] == most }
                .min { $0.value.milliseconds < $1.value.milliseconds }
            if entries.count >= capacity, let oldest { entries[oldest.key] = nil }
        }
        entries[name] = entry
    }

    private static func note(_ name: String) -> ClusterNote.Name {
        ClusterNote.Name(.answers, SHA256.digest(name).hexadecimal)
    }

    private static func digest(_ request: AdminRequest, _ route: AdminOperation) -> [UInt8] {
        let place = [route.path] + request.parameters + [request.query ?? "", ""]
        return SHA256.digest(Array(place.joined(separator: "\n").utf8) + request.body)
    }
}
