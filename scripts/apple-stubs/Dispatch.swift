open class DispatchSemaphore: @unchecked Sendable {
    public init(value: Int) {}
    public func wait() {}
    @discardableResult public func signal() -> Int { 0 }
}
extension DispatchQueue {
    public func suspend() {}
    public func resume() {}
}
public enum DispatchTimeInterval: Sendable { case seconds(Int), milliseconds(Int) }
public struct DispatchTime: Sendable {
    public static func now() -> DispatchTime { DispatchTime() }
    public static func + (time: DispatchTime, interval: DispatchTimeInterval) -> DispatchTime { time }
}
public enum DispatchTimeoutResult: Equatable, Sendable { case success, timedOut }
extension DispatchSemaphore {
    public func wait(timeout: DispatchTime) -> DispatchTimeoutResult { .success }
}

public final class DispatchSpecificKey<T> {
    public init() {}
}

extension DispatchQueue {
    public func setSpecific<T>(key: DispatchSpecificKey<T>, value: T?) {}
    public class func getSpecific<T>(key: DispatchSpecificKey<T>) -> T? { nil }
}

public final class DispatchGroup: @unchecked Sendable {
    public init() {}
    public func enter() {}
    public func leave() {}
    public func wait(timeout: DispatchTime) -> DispatchTimeoutResult { .success }
}
