// swift-format-ignore-file
public struct DispatchQoS: Equatable, Sendable { public static let utility = DispatchQoS(); public static let background = DispatchQoS(); public static let userInitiated = DispatchQoS(); public static let `default` = DispatchQoS(); public static let unspecified = DispatchQoS()
  public enum QoSClass: Sendable { case utility, background, userInitiated, `default`, unspecified } }
open class DispatchObject: @unchecked Sendable { init() {} }
public final class DispatchQueue: DispatchObject, @unchecked Sendable {
  public struct Attributes: OptionSet, Sendable { public let rawValue: UInt64; public init(rawValue: UInt64) { self.rawValue = rawValue }; public static let concurrent = Attributes(rawValue: 2) }
  public enum AutoreleaseFrequency: Sendable { case inherit, workItem, never }
  public static let main = DispatchQueue(label: "")
  public class func global(qos: DispatchQoS.QoSClass = .default) -> DispatchQueue { main }
  public convenience init(label: String, qos: DispatchQoS = .unspecified, attributes: Attributes = [], autoreleaseFrequency: AutoreleaseFrequency = .inherit, target: DispatchQueue? = nil) { self.init(x: ()) }
  init(x: ()) { super.init() }
  @preconcurrency public func async(execute work: @escaping @Sendable () -> Void) {}
  public func sync<T>(execute work: () throws -> T) rethrows -> T { try work() }
}
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
