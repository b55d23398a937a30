// swift-format-ignore-file
public typealias mode_t = UInt16
public typealias pid_t = Int32
public typealias ssize_t = Int
public typealias size_t = Int
public struct timespec { public var tv_sec: Int = 0; public var tv_nsec: Int = 0; public init() {}; public init(tv_sec: Int, tv_nsec: Int) {} }
public struct clockid_t: RawRepresentable, Equatable { public var rawValue: UInt32; public init(rawValue: UInt32) { self.rawValue = rawValue }; public init(_ r: UInt32) { rawValue = r } }
public var CLOCK_MONOTONIC: clockid_t { clockid_t(6) }
public var CLOCK_REALTIME: clockid_t { clockid_t(0) }
@available(iOS 10.0, *)
@discardableResult public func clock_gettime(_ c: clockid_t, _ t: UnsafeMutablePointer<timespec>!) -> Int32 { 0 }
public var errno: Int32 { get { 0 } set {} }
public var O_RDONLY: Int32 { 0 }
public var O_WRONLY: Int32 { 0 }
public var O_RDWR: Int32 { 0 }
public var O_CREAT: Int32 { 0 }
public var O_EXCL: Int32 { 0 }
public var O_CLOEXEC: Int32 { 0 }
public var LOCK_EX: Int32 { 0 }
public var LOCK_NB: Int32 { 0 }
public var LOCK_UN: Int32 { 0 }
public var ESRCH: Int32 { 3 }
public var EINTR: Int32 { 4 }
public func open(_ p: UnsafePointer<CChar>, _ f: Int32) -> Int32 { 0 }
public func open(_ p: UnsafePointer<CChar>, _ f: Int32, _ m: mode_t) -> Int32 { 0 }
@discardableResult public func close(_ f: Int32) -> Int32 { 0 }
@discardableResult public func flock(_ f: Int32, _ o: Int32) -> Int32 { 0 }
@discardableResult public func fsync(_ f: Int32) -> Int32 { 0 }
@discardableResult public func rename(_ a: UnsafePointer<CChar>!, _ b: UnsafePointer<CChar>!) -> Int32 { 0 }
@discardableResult public func unlink(_ a: UnsafePointer<CChar>!) -> Int32 { 0 }
@discardableResult public func chmod(_ a: UnsafePointer<CChar>!, _ m: mode_t) -> Int32 { 0 }
@discardableResult public func write(_ f: Int32, _ b: UnsafeRawPointer!, _ n: Int) -> Int { 0 }
@discardableResult public func kill(_ p: pid_t, _ s: Int32) -> Int32 { 0 }
@discardableResult public func getpid() -> pid_t { 0 }
@discardableResult public func strdup(_ p: UnsafePointer<CChar>!) -> UnsafeMutablePointer<CChar>! { nil }
public func free(_ p: UnsafeMutableRawPointer!) {}
public func strlen(_ p: UnsafePointer<CChar>!) -> Int { 0 }
@discardableResult public func memcpy(_ a: UnsafeMutableRawPointer!, _ b: UnsafeRawPointer!, _ n: Int) -> UnsafeMutableRawPointer! { nil }
public func pow(_ a: Double, _ b: Double) -> Double { 0 }
public func exp2(_ a: Double) -> Double { 0 }
public func floor(_ a: Double) -> Double { 0 }
public enum POSIXErrorCode: Int32, Sendable { case EPERM = 1, ENOENT = 2, EINTR = 4, EIO = 5, ETIMEDOUT = 60 }
public let EPERM: Int32 = 1
public typealias off_t = Int64
public typealias dev_t = Int32
public typealias ino_t = UInt64
public var ENOENT: Int32 { 2 }
public var EDQUOT: Int32 { 69 }
public var O_APPEND: Int32 { 8 }
public var O_TRUNC: Int32 { 0x400 }
public var SEEK_END: Int32 { 2 }
public var F_BARRIERFSYNC: Int32 { 85 }
public var F_FULLFSYNC: Int32 { 51 }
public func strerror(_ code: Int32) -> UnsafeMutablePointer<CChar>! { nil }
@discardableResult public func fcntl(_ descriptor: Int32, _ command: Int32) -> Int32 { 0 }
@discardableResult public func ftruncate(_ descriptor: Int32, _ length: off_t) -> Int32 { 0 }
@discardableResult public func lseek(_ descriptor: Int32, _ offset: off_t, _ origin: Int32) -> off_t { 0 }
// An initializer replaces the C function `stat`, because Swift cannot declare a function and a type of one name.
// Its result can be compared with a number.
public struct stat: Equatable, ExpressibleByIntegerLiteral {
    public var st_dev: Int32 = 0
    public var st_mode: mode_t = 0
    public var st_nlink: UInt16 = 0
    public var st_ino: UInt64 = 0
    public var st_size: off_t = 0
    public var st_mtimespec = timespec()
    public init() {}
    public init(integerLiteral value: Int32) {}
    public init(_ path: UnsafePointer<CChar>!, _ result: UnsafeMutablePointer<stat>!) {}
    public static func == (one: stat, other: stat) -> Bool { one.st_ino == other.st_ino }
}
@discardableResult public func fstat(_ descriptor: Int32, _ result: UnsafeMutablePointer<stat>!) -> Int32 { 0 }
public let EIO: Int32 = 5
public func memcmp(_ one: UnsafeRawPointer!, _ other: UnsafeRawPointer!, _ count: Int) -> Int32 { 0 }
public func memchr(_ bytes: UnsafeRawPointer!, _ byte: Int32, _ count: Int) -> UnsafeMutableRawPointer! { nil }
public func pread(_ file: Int32, _ buffer: UnsafeMutableRawPointer!, _ count: Int, _ offset: off_t) -> Int { 0 }
public func pwrite(_ file: Int32, _ buffer: UnsafeRawPointer!, _ count: Int, _ offset: off_t) -> Int { 0 }
public let EWOULDBLOCK: Int32 = 35
@discardableResult public func usleep(_ microseconds: UInt32) -> Int32 { 0 }
public struct utsname { public var release: (CChar, CChar) = (0, 0), machine: (CChar, CChar) = (0, 0); public init() {} }
@discardableResult public func uname(_ names: UnsafeMutablePointer<utsname>!) -> Int32 { 0 }
