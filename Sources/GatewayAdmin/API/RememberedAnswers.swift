internal import CountersignCore
internal import CountersignJOSE
internal import GatewayHTTP

/// The answers to what was made under an `Idempotency-Key`, for whoever asks again because the answer got lost
/// (draft-ietf-httpapi-idempotency-key-header-07).
///
/// In memory only, since they hold what is shown once: a restart forgets them. Refusals are not kept, so that what was
/// wrong can be put right under the same key.
final class RememberedAnswers: Sendable {
    private struct Entry {
        /// Of what was asked.
        let digest: [UInt8]
        let response: HTTPResponse
        let milliseconds: Int64
    }

    private static let capacity = 1_000
    private static let lifetimeMilliseconds: Int64 = 86_400_000

    private let entries = Lock<[String: Entry]>([:])

    /// The answer that the same sender has had to the same request under the same key. Returns nil when there is none,
    /// or no key. Throws 422 for a key that is empty or longer than 255 bytes, or was sent with another request.
    func answer(
        to request: AdminRequest, _ route: AdminOperation, of identity: AdminIdentity, at milliseconds: Int64
    ) throws(AdminProblem) -> HTTPResponse? {
        guard let name = Self.name(of: request, route, identity), let key = request.idempotencyKey else {
            return nil
        }
        guard (1...255).contains(key.utf8.count) else {
            throw AdminProblem(422, "invalid", "Idempotency-Key has 1 to 255 bytes")
        }
        guard let entry = entries.withLock({ $0[name] }),
            milliseconds - entry.milliseconds < Self.lifetimeMilliseconds
        else { return nil }
        guard entry.digest == Self.digest(request, route) else {
            throw AdminProblem(
                422, "idempotency_key_reused",
                "this Idempotency-Key was sent with another request; each request needs its own")
        }
        return entry.response.with("Idempotency-Replayed", "true")
    }

    /// Keeps what was answered. Refusals are thrown, and so never come here.
    func keep(
        _ response: HTTPResponse, to request: AdminRequest, _ route: AdminOperation,
        of identity: AdminIdentity,
        at milliseconds: Int64
    ) {
        guard let name = Self.name(of: request, route, identity) else { return }
        let entry = Entry(
            digest: Self.digest(request, route), response: response, milliseconds: milliseconds)
        entries.withLock { entries in
            if entries.count >= Self.capacity {
                entries = entries.filter { milliseconds - $0.value.milliseconds < Self.lifetimeMilliseconds }
                if entries.count >= Self.capacity,
                    let oldest = entries.min(by: { $0.value.milliseconds < $1.value.milliseconds })
                {
                    entries[oldest.key] = nil
                }
            }
            entries[name] = entry
        }
    }

    /// Nil for what takes no key: what is not made, and what anybody may ask.
    private static func name(
        of request: AdminRequest, _ route: AdminOperation, _ identity: AdminIdentity
    ) -> String? {
        guard route.takesIdempotencyKey, let key = request.idempotencyKey else { return nil }
        return "\(identity.name)\n\(key)"
    }

    private static func digest(_ request: AdminRequest, _ route: AdminOperation) -> [UInt8] {
        let place = [route.path] + request.parameters + [request.query ?? "", ""]
        return SHA256.digest(Array(place.joined(separator: "\n").utf8) + request.body)
    }
}
