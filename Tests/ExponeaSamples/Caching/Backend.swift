// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

// What the sample takes for granted: an app's own way to its backend, and what it means by expired.
import Foundation

public final class TokenBackend: @unchecked Sendable {
    // `@unchecked Sendable`: the lock guards both.
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

/// `lifetime` is the end of the token's life in seconds since 1970.
func hasExpired(_ lifetime: Double?) -> Bool {
    (lifetime ?? 0) <= Date().timeIntervalSince1970
}
