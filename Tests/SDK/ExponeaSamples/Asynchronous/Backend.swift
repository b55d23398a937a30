// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

// A stand-in for the app's client of its own backend, which the sample assumes.
import Foundation

public struct TokenRequest: Sendable {}

public final class TokenBackend: @unchecked Sendable {
    // `@unchecked Sendable`: the lock guards `answer`.
    private let lock = NSLock()
    private var answer: @Sendable () -> String? = { nil }

    /// Sets the answer. Tasks complete on another queue, as with a network library.
    public func answer(_ body: @escaping @Sendable () -> String?) {
        lock.lock()
        defer { lock.unlock() }
        answer = body
    }

    func dataTask(with request: TokenRequest, completion: @escaping (String?) -> Void) -> TokenTask {
        lock.lock()
        defer { lock.unlock() }
        return TokenTask(answer: answer, completion: completion)
    }
}

struct TokenTask {
    private struct Completion: @unchecked Sendable {
        // Called once, by the queue.
        let call: (String?) -> Void
    }

    let answer: @Sendable () -> String?
    let completion: (String?) -> Void

    func resume() {
        let completion = Completion(call: completion)
        DispatchQueue(label: "backend").async { [answer] in completion.call(answer()) }
    }
}

public let yourAuthTokenReqUrl = TokenBackend()
let request = TokenRequest()
