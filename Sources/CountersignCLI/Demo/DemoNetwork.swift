internal import Countersign
internal import CountersignCore
internal import Foundation

/// A device's way to the gateway, which can be cut, and can be so slow that a token expires on the way.
final class DemoNetwork: HTTPTransport {
    /// What went over it.
    struct Tally: Sendable, Equatable {
        /// Events that the gateway took, or had already.
        var delivered = 0
        /// Of those, the ones that it had already.
        var duplicates = 0
        /// Requests that found no network.
        var cut = 0
        /// Requests that the gateway refused, by code and reason, such as `22 EXPIRED`.
        var refusals: [String: Int] = [:]
    }

    private struct State {
        var isCut = false
        var holdsNext = false
        var isHolding = false
        var tally = Tally()
    }

    private let inner: any HTTPTransport
    private let tokens: DemoTokens
    private let sleep: @Sendable (Double) async throws -> Void
    private let state = Lock(State())

    init(
        over inner: any HTTPTransport, tokens: DemoTokens,
        sleep: @escaping @Sendable (Double) async throws -> Void = { seconds in
            try await Task.sleep(nanoseconds: UInt64(seconds * 1_000_000_000))
        }
    ) {
        self.inner = inner
        self.tokens = tokens
        self.sleep = sleep
    }

    var tally: Tally { state.withLock { $0.tally } }

    /// Why events wait at this moment; nil when nothing keeps them.
    var delay: String? {
        state.withLock { state in
            if state.isCut { return "has no network" }
            return state.isHolding ? "waits until its token expires on the way" : nil
        }
    }

    /// Cuts the network, or mends it.
    func setCut(_ isCut: Bool) {
        state.withLock { $0.isCut = isCut }
    }

    /// Keeps the next request under way until its token has expired.
    func holdNext() {
        state.withLock { $0.holdsNext = true }
    }

    func send(_ request: TransportRequest) async throws(HTTPTransportError) -> TransportResponse {
        let (isCut, isHeld) = state.withLock { state in
            if state.isCut { state.tally.cut += 1 }
            defer { if !state.isCut { state.holdsNext = false } }
            return (state.isCut, state.holdsNext)
        }
        if isCut { throw HTTPTransportError(.cannotConnect, "the device has no network") }
        if isHeld { try await waitForExpiry(of: request) }
        do {
            let response = try await inner.send(request)
            note(response)
            return response
        } catch {
            // Nobody has judged the expired token: the next request has to show it.
            if isHeld { holdNext() }
            throw error
        }
    }

    private func waitForExpiry(of request: TransportRequest) async throws(HTTPTransportError) {
        guard let bearer = request.header("Authorization"), bearer.hasPrefix("Bearer "),
            let expiresAt = tokens.expiry(of: String(bearer.dropFirst("Bearer ".count)))
        else { return }
        state.withLock { $0.isHolding = true }
        defer { state.withLock { $0.isHolding = false } }
        // A little longer, so that no rounding makes the token good.
        let seconds = max(0, expiresAt + 0.05 - Date().timeIntervalSince1970)
        do {
            try await sleep(seconds)
        } catch {
            throw HTTPTransportError(.cancelled, "the task was cancelled")
        }
    }

    private func note(_ response: TransportResponse) {
        let answer = try? JSONDecoder().decode(Answer.self, from: Data(response.body))
        state.withLock { state in
            if response.status == 200 {
                state.tally.delivered += (answer?.accepted ?? 0) + (answer?.duplicates ?? 0)
                state.tally.duplicates += answer?.duplicates ?? 0
            } else {
                let code = answer?.authError.map { "\($0.errorCode) \($0.reason)" } ?? answer?.code
                state.tally.refusals[code ?? String(response.status), default: 0] += 1
            }
        }
    }

    private struct Answer: Decodable {
        struct AuthError: Decodable {
            let errorCode: Int
            let reason: String

            enum CodingKeys: String, CodingKey {
                case errorCode = "error_code"
                case reason
            }
        }

        let accepted: Int?
        let duplicates: Int?
        let code: String?
        let authError: AuthError?

        enum CodingKeys: String, CodingKey {
            case accepted, duplicates, code
            case authError = "auth_error"
        }
    }
}
