internal import CountersignCore
internal import CountersignDelivery
internal import CountersignTransport
internal import Foundation

/// A simulated network of a device. It can be cut, and can delay a request until its token has expired.
final class DemoNetwork: HTTPTransport {
    struct Tally: Sendable, Equatable {
        /// Events that the gateway accepted, including duplicates.
        var delivered = 0
        var duplicates = 0
        /// Requests that failed because the network was cut.
        var cut = 0
        /// Rejected requests, by code and reason, such as `22 EXPIRED`.
        var rejections: [String: Int] = [:]
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
        sleep: @escaping @Sendable (Double) async throws -> Void = { try await Task.sleep(for: .seconds($0)) }
    ) {
        self.inner = inner
        self.tokens = tokens
        self.sleep = sleep
    }

    var tally: Tally { state.withLock { $0.tally } }

    /// The reason why events wait now; nil if they do not wait.
    var delay: String? {
        state.withLock { state in
            if state.isCut { return "has no network" }
            return state.isHolding ? "waits until its token expires" : nil
        }
    }

    func setCut(_ isCut: Bool) {
        state.withLock { $0.isCut = isCut }
    }

    /// Delays the next request until its token has expired.
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
            // The gateway has not verified the expired token, so the next request is delayed instead.
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
        // 0.05 s is a margin for rounding.
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
                state.tally.rejections[code ?? String(response.status), default: 0] += 1
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
