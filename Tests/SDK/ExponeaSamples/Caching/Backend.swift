// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

// The sample's assumptions: an app's backend and its definition of an expired token.
import Foundation

public final class TokenBackend: @unchecked Sendable {
    // `@unchecked Sendable`: `lock` guards both properties.
    private let lock = NSLock()
    private var answer: @Sendable () -> (String?, Double?) = { (nil, nil) }
    private var calls = 0

    public var callCount: Int {
        lock.lock()
        defer { lock.unlock() }
        return calls
    }

    public func answer(_ body: @escaping @Sendable () -> (String?, Double?)) {
        lock.lock()
        defer { lock.unlock() }
        answer = body
        calls = 0
    }

    func load() -> (String?, Double?) {
        lock.lock()
        defer { lock.unlock() }
        calls += 1
        return answer()
    }
}

public let yourBackend = TokenBackend()

/// `lifetime` is the token's expiry in seconds since 1970.
func hasExpired(_ lifetime: Double?) -> Bool {
    (lifetime ?? 0) <= Date().timeIntervalSince1970
}
