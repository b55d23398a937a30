extension Date {
    public static func += (date: inout Date, interval: TimeInterval) {}
}
extension FileManager {
    public var temporaryDirectory: URL { fatalError() }
}
extension ProcessInfo {
    @available(iOS 8.2, *) @available(macOS, unavailable)
    public func performExpiringActivity(withReason reason: String, using block: @escaping @Sendable (Bool) -> Void) {}
}
extension NSNumber {
    public var objCType: UnsafePointer<CChar> { fatalError() }
    public var int64Value: Int64 { 0 }
    public var uint64Value: UInt64 { 0 }
    public var doubleValue: Double { 0 }
    public var floatValue: Float { 0 }
    public var stringValue: String { "" }
}
public struct Decimal: Sendable, Hashable, CustomStringConvertible {
    public init?(string: String, locale: Locale? = nil) {}
    public var isNaN: Bool { false }
    public var description: String { "" }
}
open class NSDecimalNumber: NSNumber, @unchecked Sendable {
    open var decimalValue: Decimal { fatalError() }
}
open class NSDate: NSObject, @unchecked Sendable {
    open var timeIntervalSince1970: TimeInterval { 0 }
}
extension Bundle {
    public var bundlePath: String { "" }
    public var executableURL: URL? { nil }
    public var infoDictionary: [String: Any]? { nil }
}
extension URLSessionConfiguration {
    @available(iOS 13.0, macOS 10.15, *)
    public var allowsConstrainedNetworkAccess: Bool { get { true } set {} }
}
extension URLSession {
    public func finishTasksAndInvalidate() {}
}
extension JSONEncoder {
    public enum DateEncodingStrategy: Sendable { case deferredToDate, secondsSince1970, millisecondsSince1970, iso8601 }
    public var dateEncodingStrategy: DateEncodingStrategy { get { .deferredToDate } set {} }
}
extension NSLock {
    public func lock(before limit: Date) -> Bool { true }
}
extension FileProtectionType {
    public static var none: FileProtectionType { completeUntilFirstUserAuthentication }
}
public struct OperatingSystemVersion: Sendable {
    public var majorVersion: Int, minorVersion: Int, patchVersion: Int
}
extension ProcessInfo {
    public var operatingSystemVersion: OperatingSystemVersion { fatalError() }
}
extension Bundle {
    public func object(forInfoDictionaryKey key: String) -> Any? { nil }
}
public struct DateComponents: Sendable {
    public var year: Int?, month: Int?, day: Int?
}
public struct Calendar: Sendable {
    public enum Identifier: Sendable { case gregorian }
    public enum Component: Sendable { case year, month, day }
    public init(identifier: Identifier) {}
    public func dateComponents(_ components: Set<Component>, from date: Date) -> DateComponents { fatalError() }
}
extension Array: DataProtocol where Element == UInt8 {}
open class URLSessionDataTask: URLSessionTask, @unchecked Sendable {}
extension URLSessionTask {
    public func cancel() {}
}
extension URLSession.AsyncBytes {
    public var task: URLSessionDataTask { fatalError() }
}
extension CocoaError {
    public var userInfo: [String: Any] { [:] }
}
