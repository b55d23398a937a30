// swift-format-ignore-file
@_exported import Darwin
@_exported import Dispatch
public typealias TimeInterval = Double
public protocol NSObjectProtocol: AnyObject {}
open class NSObject: NSObjectProtocol, Equatable, Hashable, CustomStringConvertible { public init() {}; public static func == (a: NSObject, b: NSObject) -> Bool { true }; public func hash(into h: inout Hasher) {}; open var description: String { "" } }
public struct Date: Comparable, Hashable, Sendable, Codable, CustomStringConvertible { public init() {}; public init(timeIntervalSince1970: TimeInterval) {}; public init(timeIntervalSinceNow: TimeInterval) {}; public init(timeInterval: TimeInterval, since: Date) {}
  public var timeIntervalSince1970: TimeInterval { 0 }; public var timeIntervalSinceNow: TimeInterval { 0 }
  public func timeIntervalSince(_ d: Date) -> TimeInterval { 0 }; public func addingTimeInterval(_ t: TimeInterval) -> Date { self }
  @available(iOS 15, macOS 12, *) public static var now: Date { Date() }
  public static func < (a: Date, b: Date) -> Bool { false }; public static func + (a: Date, b: TimeInterval) -> Date { a }; public static func - (a: Date, b: TimeInterval) -> Date { a }
  public static let distantPast = Date(); public static let distantFuture = Date(); public var description: String { "" } }
public protocol ContiguousBytes { func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R }
extension Array: ContiguousBytes where Element == UInt8 {}
public protocol DataProtocol {}
public struct Data: Hashable, Sendable, Codable, RandomAccessCollection, MutableCollection, RangeReplaceableCollection, ContiguousBytes, DataProtocol, CustomStringConvertible { public typealias Element = UInt8; public typealias Index = Int; public typealias SubSequence = Data
  public struct WritingOptions: OptionSet, Sendable { public let rawValue: UInt; public init(rawValue: UInt) { self.rawValue = rawValue }; public static let atomic = WritingOptions(rawValue: 1); public static let completeFileProtectionUntilFirstUserAuthentication = WritingOptions(rawValue: 2) }
  public struct ReadingOptions: OptionSet, Sendable { public let rawValue: UInt; public init(rawValue: UInt) { self.rawValue = rawValue } }
  public struct Base64DecodingOptions: OptionSet, Sendable { public let rawValue: UInt; public init(rawValue: UInt) { self.rawValue = rawValue } }
  public struct Base64EncodingOptions: OptionSet, Sendable { public let rawValue: UInt; public init(rawValue: UInt) { self.rawValue = rawValue } }
  public init() {}; public init<S: Sequence>(_ s: S) where S.Element == UInt8 {}; public init(count: Int) {}; public init(bytes: UnsafeRawPointer, count: Int) {}
  public init(contentsOf url: URL, options: ReadingOptions = []) throws {}
  public init?(base64Encoded s: String, options: Base64DecodingOptions = []) {}
  public func base64EncodedString(options: Base64EncodingOptions = []) -> String { "" }
  public func write(to url: URL, options: WritingOptions = []) throws {}
  public var startIndex: Int { 0 }; public var endIndex: Int { 0 }; public subscript(i: Int) -> UInt8 { get { 0 } set {} }
  public subscript(r: Range<Int>) -> Data { get { self } set {} }
  public mutating func replaceSubrange<C: Collection>(_ r: Range<Int>, with c: C) where C.Element == UInt8 {}
  public func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R { fatalError() }
  public func hash(into h: inout Hasher) {}; public static func == (a: Data, b: Data) -> Bool { true }; public var description: String { "" }
  public init(from d: any Decoder) throws {}; public func encode(to e: any Encoder) throws {} }
public struct UUID: Hashable, Sendable, Codable, CustomStringConvertible { public init() {}; public init?(uuidString: String) {}; public var uuidString: String { "" }; public var description: String { "" } }
public struct URLResourceValues { public init() {}; public var isExcludedFromBackup: Bool? { get { nil } set {} } }
@available(*, unavailable) extension URLResourceValues: Sendable {}
public struct URL: Hashable, Sendable, Codable, CustomStringConvertible { public init?(string: String) {}; public init(fileURLWithPath: String) {}; public init(fileURLWithPath: String, isDirectory: Bool) {}; public init?(string: String, relativeTo: URL?) {}
  @available(iOS 16, macOS 13, *) public enum DirectoryHint: Sendable { case isDirectory }
  @available(iOS 16, macOS 13, *) public init(filePath: String, directoryHint: DirectoryHint = .isDirectory) {}
  @available(iOS 16, macOS 13, *) public func appending(path: String) -> URL { self }
  @available(iOS 16, macOS 13, *) public func path(percentEncoded: Bool = true) -> String { "" }
  @available(iOS 16, macOS 13, *) public func host(percentEncoded: Bool = true) -> String? { "" }
  public var scheme: String? { nil }; public var host: String? { nil }; public var port: Int? { nil }; public var path: String { "" }; public var query: String? { nil }; public var fragment: String? { nil }; public var user: String? { nil }; public var password: String? { nil }; public var absoluteString: String { "" }; public var lastPathComponent: String { "" }; public var pathExtension: String { "" }; public var absoluteURL: URL { self }; public var standardizedFileURL: URL { self }; public var relativePath: String { "" }; public var pathComponents: [String] { [] }
  public func appendingPathComponent(_ s: String) -> URL { self }; public func appendingPathComponent(_ s: String, isDirectory: Bool) -> URL { self }; public func deletingLastPathComponent() -> URL { self }
  public mutating func setResourceValues(_ v: URLResourceValues) throws {}
  public var description: String { "" }; public init(from d: any Decoder) throws { fatalError() }; public func encode(to e: any Encoder) throws {} }
public struct URLQueryItem: Hashable, Sendable { public var name: String; public var value: String?; public init(name: String, value: String?) { self.name = name; self.value = value } }
public struct URLComponents: Hashable, Sendable { public init() {}; public init?(string: String) {}; public init?(url: URL, resolvingAgainstBaseURL: Bool) {}; public var queryItems: [URLQueryItem]? { get { nil } set {} }; public var url: URL? { nil }; public var percentEncodedQuery: String? { get { nil } set {} }; public var path: String { get { "" } set {} }; public var percentEncodedPath: String { get { "" } set {} }; public var scheme: String? { get { nil } set {} } ; public var host: String? { get { nil } set {} }; public var port: Int? { get { nil } set {} } }
public struct FileAttributeKey: Hashable, RawRepresentable, Sendable { public var rawValue: String; public init(rawValue: String) { self.rawValue = rawValue }; public init(_ s: String) { rawValue = s }
  public static let posixPermissions = FileAttributeKey(""); public static let protectionKey = FileAttributeKey(""); public static let size = FileAttributeKey(""); public static let modificationDate = FileAttributeKey("") }
public struct FileProtectionType: Hashable, RawRepresentable, Sendable { public var rawValue: String; public init(rawValue: String) { self.rawValue = rawValue }
  public static let completeUntilFirstUserAuthentication = FileProtectionType(rawValue: ""); public static let complete = FileProtectionType(rawValue: "") }
open class FileManager: NSObject, @unchecked Sendable { open class var `default`: FileManager { fatalError() }
  public enum SearchPathDirectory: UInt, Sendable { case applicationSupportDirectory = 14, cachesDirectory = 13, documentDirectory = 9 }
  public struct SearchPathDomainMask: OptionSet, Sendable { public let rawValue: UInt; public init(rawValue: UInt) { self.rawValue = rawValue }; public static let userDomainMask = SearchPathDomainMask(rawValue: 1) }
  open func urls(for: SearchPathDirectory, in: SearchPathDomainMask) -> [URL] { [] }
  open func createDirectory(at: URL, withIntermediateDirectories: Bool, attributes: [FileAttributeKey: Any]? = nil) throws {}
  open func createDirectory(atPath: String, withIntermediateDirectories: Bool, attributes: [FileAttributeKey: Any]? = nil) throws {}
  open func fileExists(atPath: String) -> Bool { false }
  open func removeItem(atPath: String) throws {}
  open func removeItem(at: URL) throws {}
  open func moveItem(atPath: String, toPath: String) throws {}
  open func copyItem(atPath: String, toPath: String) throws {}
  open func contentsOfDirectory(atPath: String) throws -> [String] { [] }
  open func contents(atPath: String) -> Data? { nil }
  open func attributesOfItem(atPath: String) throws -> [FileAttributeKey: Any] { [:] }
  open func setAttributes(_ a: [FileAttributeKey: Any], ofItemAtPath: String) throws {} }
public func NSTemporaryDirectory() -> String { "" }
public func NSClassFromString(_ s: String) -> AnyClass? { nil }
public func NSStringFromClass(_ s: AnyClass) -> String { "" }
open class ProcessInfo: NSObject, @unchecked Sendable { open class var processInfo: ProcessInfo { fatalError() }; open var environment: [String: String] { [:] }; open var systemUptime: TimeInterval { 0 }; open var processIdentifier: Int32 { 0 } }
open class NSLock: NSObject, @unchecked Sendable { open func lock() {}; open func unlock() {}; open func `try`() -> Bool { true }; @available(iOS 13.0, *) public func withLock<R>(_ body: () throws -> R) rethrows -> R { try body() } }
open class NSRecursiveLock: NSObject, @unchecked Sendable { open func lock() {}; open func unlock() {}; open func `try`() -> Bool { true }; @available(iOS 13.0, *) public func withLock<R>(_ body: () throws -> R) rethrows -> R { try body() } }
open class NSCondition: NSObject, @unchecked Sendable { open func lock() {}; open func unlock() {}; open func wait() {}; open func signal() {} }
open class NSNull: NSObject, @unchecked Sendable { }
open class NSNumber: NSObject, @unchecked Sendable { open var boolValue: Bool { false } }
public struct POSIXError: Error, Hashable { public typealias Code = POSIXErrorCode; public init(_ code: Code, userInfo: [String: Any] = [:]) {}; public var code: Code { .EIO }; public static func == (a: POSIXError, b: POSIXError) -> Bool { true }; public func hash(into h: inout Hasher) {} ; public static var ETIMEDOUT: Code { .ETIMEDOUT } }
public struct CocoaError: Error, Hashable { public struct Code: RawRepresentable, Hashable, Sendable { public let rawValue: Int; public init(rawValue: Int) { self.rawValue = rawValue }; public static var fileWriteUnknown: Code { Code(rawValue: 0) }; public static var fileReadNoSuchFile: Code { Code(rawValue: 0) }; public static var fileNoSuchFile: Code { Code(rawValue: 0) } }
  public init(_ code: Code, userInfo: [String: Any] = [:]) {}; public var code: Code { .fileWriteUnknown }; public static func == (a: CocoaError, b: CocoaError) -> Bool { true }; public func hash(into h: inout Hasher) {}
  public static var fileReadNoSuchFile: Code { .fileReadNoSuchFile }; public static var fileWriteUnknown: Code { .fileWriteUnknown } }
public let NSFilePathErrorKey: String = ""
public let NSLocalizedDescriptionKey: String = ""
public let NSOSStatusErrorDomain: String = ""
public typealias OSStatus = Int32
open class NSError: NSObject, Error, @unchecked Sendable { public init(domain: String, code: Int, userInfo: [String: Any]? = nil) { super.init() }; open var code: Int { 0 }; open var domain: String { "" } }
public protocol LocalizedError: Error { var errorDescription: String? { get } }
extension LocalizedError { public var errorDescription: String? { nil } }
extension Error { public var localizedDescription: String { "" } }
public class JSONEncoder { public struct OutputFormatting: OptionSet, Sendable { public let rawValue: UInt; public init(rawValue: UInt) { self.rawValue = rawValue }; public static let sortedKeys = OutputFormatting(rawValue: 1); public static let withoutEscapingSlashes = OutputFormatting(rawValue: 2); public static let prettyPrinted = OutputFormatting(rawValue: 4) }; public init() {}; open var outputFormatting: OutputFormatting = []; open func encode<T: Encodable>(_ t: T) throws -> Data { Data() } }
extension JSONEncoder: @unchecked Sendable {}
public class JSONDecoder { public init() {}; open func decode<T: Decodable>(_ t: T.Type, from: Data) throws -> T { fatalError() } }
extension JSONDecoder: @unchecked Sendable {}
open class JSONSerialization: NSObject { public struct ReadingOptions: OptionSet, Sendable { public let rawValue: UInt; public init(rawValue: UInt) { self.rawValue = rawValue }; public static let fragmentsAllowed = ReadingOptions(rawValue: 1) }; public struct WritingOptions: OptionSet, Sendable { public let rawValue: UInt; public init(rawValue: UInt) { self.rawValue = rawValue }; public static let sortedKeys = WritingOptions(rawValue: 1) ; public static let fragmentsAllowed = WritingOptions(rawValue: 1) }
  open class func jsonObject(with: Data, options: ReadingOptions = []) throws -> Any { 0 }; open class func data(withJSONObject: Any, options: WritingOptions = []) throws -> Data { Data() }; open class func isValidJSONObject(_ o: Any) -> Bool { true } }
open class ISO8601DateFormatter: NSObject, @unchecked Sendable { open func string(from: Date) -> String { "" }; open func date(from: String) -> Date? { nil } }
open class FileHandle: NSObject, @unchecked Sendable { open class var standardError: FileHandle { fatalError() }; public convenience init(forReadingFrom: URL) throws { self.init() }; public convenience init(forUpdating: URL) throws { self.init() }; open func write(_ d: Data) {}
  @available(iOS 13.0, *) open func close() throws {}
  @available(iOS 13.4, *) public func read(upToCount: Int) throws -> Data? { nil }
  @available(iOS 13.4, *) public func seekToEnd() throws -> UInt64 { 0 }
  @available(iOS 13.0, *) open func seek(toOffset: UInt64) throws {}
  @available(iOS 13.4, *) public func write<T: DataProtocol>(contentsOf: T) throws {} }
open class Thread: NSObject, @unchecked Sendable { open class func detachNewThread(_ b: @escaping @Sendable () -> Void) {}; open class var isMainThread: Bool { true }; open class func sleep(forTimeInterval: TimeInterval) {} }
open class Bundle: NSObject, @unchecked Sendable { open class var main: Bundle { fatalError() }; open class var allBundles: [Bundle] { [] }; open func url(forResource: String?, withExtension: String?) -> URL? { nil }; open func path(forResource: String?, ofType: String?) -> String? { nil }; open var bundleIdentifier: String? { nil } ; open var bundleURL: URL { fatalError() }; open var resourceURL: URL? { nil } }
public class PropertyListDecoder { public init() {}; open func decode<T: Decodable>(_ t: T.Type, from: Data) throws -> T { fatalError() } }
open class PropertyListSerialization: NSObject { public struct ReadOptions: OptionSet, Sendable { public let rawValue: UInt; public init(rawValue: UInt) { self.rawValue = rawValue } }; public enum PropertyListFormat: UInt, Sendable { case xml }; open class func propertyList(from: Data, options: ReadOptions = [], format: UnsafeMutablePointer<PropertyListFormat>?) throws -> Any { 0 } }
public struct CharacterSet: Hashable, Sendable { public static var whitespacesAndNewlines: CharacterSet { CharacterSet() }; public static var whitespaces: CharacterSet { CharacterSet() } ; public static var urlQueryAllowed: CharacterSet { CharacterSet() } ; public init() {}; public init(charactersIn: String) {} }
public struct NSStringCompareOptions: OptionSet, Sendable { public let rawValue: UInt; public init(rawValue: UInt) { self.rawValue = rawValue } }
public struct Locale: Sendable { public static var current: Locale { Locale() }; public var identifier: String { "" } }
extension StringProtocol { public func range<T: StringProtocol>(of: T, options: NSStringCompareOptions = [], range: Range<Index>? = nil, locale: Locale? = nil) -> Range<Index>? { nil }
  public func trimmingCharacters(in: CharacterSet) -> String { "" }
  public func replacingOccurrences<A: StringProtocol, B: StringProtocol>(of: A, with: B, options: NSStringCompareOptions = [], range: Range<Index>? = nil) -> String { "" }
  public func components<T: StringProtocol>(separatedBy: T) -> [String] { [] }
  public func addingPercentEncoding(withAllowedCharacters: CharacterSet) -> String? { nil }
  public var removingPercentEncoding: String? { nil } 
  public func data(using: String.Encoding, allowLossyConversion: Bool = false) -> Data? { nil } }
extension String { public struct Encoding: Sendable, Hashable { public static let utf8 = Encoding() }; public init?(data: Data, encoding: Encoding) { self = "" } }
extension Notification { public struct Name: Hashable, RawRepresentable, @unchecked Sendable { public var rawValue: String; public init(rawValue: String) { self.rawValue = rawValue }; public init(_ s: String) { rawValue = s } } }
public struct Notification { public var name: Name; public var object: Any? }
open class OperationQueue: NSObject, @unchecked Sendable { open class var main: OperationQueue { fatalError() } }
open class NotificationCenter: NSObject, @unchecked Sendable { open class var `default`: NotificationCenter { fatalError() }; open func addObserver(forName: Notification.Name?, object: Any?, queue: OperationQueue?, using: @escaping @Sendable (Notification) -> Void) -> any NSObjectProtocol { fatalError() }; open func removeObserver(_ o: Any) {} }
public protocol XMLParserDelegate: NSObjectProtocol { func parser(_ parser: XMLParser, foundCharacters string: String) }
open class XMLParser: NSObject { public init(data: Data) {}; unowned open var delegate: (any XMLParserDelegate)?; open var shouldProcessNamespaces: Bool = false; open func parse() -> Bool { true }; open var lineNumber: Int { 0 }; open var parserError: (any Error)? { nil } ; open func abortParsing() {} }
public struct URLRequest: Hashable, Sendable { public enum CachePolicy: UInt, Sendable { case useProtocolCachePolicy }; public init(url: URL, cachePolicy: CachePolicy = .useProtocolCachePolicy, timeoutInterval: TimeInterval = 60) {}; public var httpMethod: String? { get { nil } set {} }; public var httpBody: Data? { get { nil } set {} }; public mutating func addValue(_ v: String, forHTTPHeaderField: String) {}; public mutating func setValue(_ v: String?, forHTTPHeaderField: String) {} }
open class URLCache: NSObject, @unchecked Sendable {}
open class URLCredentialStorage: NSObject, @unchecked Sendable {}
open class URLSessionConfiguration: NSObject, @unchecked Sendable { open class var ephemeral: URLSessionConfiguration { fatalError() }; open var httpShouldSetCookies = false; open var urlCache: URLCache?; open var urlCredentialStorage: URLCredentialStorage?; open var timeoutIntervalForResource: TimeInterval = 0 ; open var waitsForConnectivity = false }
open class URLResponse: NSObject, @unchecked Sendable {}
open class HTTPURLResponse: URLResponse, @unchecked Sendable { open var statusCode: Int { 0 }; open var allHeaderFields: [AnyHashable: Any] { [:] } }
open class URLSessionTask: NSObject, @unchecked Sendable {}
public protocol URLSessionDelegate: NSObjectProtocol, Sendable {}
public protocol URLSessionTaskDelegate: URLSessionDelegate { func urlSession(_ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest) async -> URLRequest? }
open class URLSession: NSObject, @unchecked Sendable { public init(configuration: URLSessionConfiguration) {}
  open class var shared: URLSession { fatalError() }
  @available(macOS 12.0, iOS 15.0, *) public struct AsyncBytes: AsyncSequence, Sendable { public typealias Element = UInt8; public struct AsyncIterator: AsyncIteratorProtocol { public mutating func next() async throws -> UInt8? { nil } }; public func makeAsyncIterator() -> AsyncIterator { AsyncIterator() } }
  @available(macOS 12.0, iOS 15.0, *) public func bytes(for: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil) async throws -> (AsyncBytes, URLResponse) { fatalError() }
  @available(macOS 12.0, iOS 15.0, *) public func data(for: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil) async throws -> (Data, URLResponse) { fatalError() }
  @available(macOS 12.0, iOS 15.0, *) public func data(from: URL, delegate: (any URLSessionTaskDelegate)? = nil) async throws -> (Data, URLResponse) { fatalError() } }
public struct URLError: Error, Hashable { public struct Code: RawRepresentable, Hashable, Sendable { public let rawValue: Int; public init(rawValue: Int) { self.rawValue = rawValue }
  public static var timedOut: Code { Code(rawValue: 0) }; public static var cancelled: Code { Code(rawValue: 0) }; public static var cannotConnectToHost: Code { Code(rawValue: 0) }; public static var cannotFindHost: Code { Code(rawValue: 0) }; public static var dnsLookupFailed: Code { Code(rawValue: 0) }; public static var notConnectedToInternet: Code { Code(rawValue: 0) }; public static var networkConnectionLost: Code { Code(rawValue: 0) }; public static var secureConnectionFailed: Code { Code(rawValue: 0) }; public static var serverCertificateUntrusted: Code { Code(rawValue: 0) }; public static var serverCertificateHasBadDate: Code { Code(rawValue: 0) }; public static var serverCertificateNotYetValid: Code { Code(rawValue: 0) }; public static var serverCertificateHasUnknownRoot: Code { Code(rawValue: 0) }; public static var badURL: Code { Code(rawValue: 0) } }
  public init(_ c: Code) {}; public var code: Code { .timedOut }; public func hash(into h: inout Hasher) {}; public static func == (a: URLError, b: URLError) -> Bool { true } }
public typealias CFString = String
public typealias CFDictionary = [String: Any]
public typealias CFTypeRef = Any
public enum ComparisonResult: Int, Sendable { case orderedAscending = -1, orderedSame, orderedDescending }
extension StringProtocol { public func caseInsensitiveCompare<T: StringProtocol>(_ s: T) -> ComparisonResult { .orderedSame }
  public func contains<T: StringProtocol>(_ other: T) -> Bool { false } 
  public func compare<T: StringProtocol>(_ s: T) -> ComparisonResult { .orderedSame } }
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
