public let EPERM: Int32 = 1
public typealias off_t = Int64
public typealias dev_t = Int32
public typealias ino_t = UInt64
public var ENOENT: Int32 { 2 }
public var O_APPEND: Int32 { 8 }
public var O_TRUNC: Int32 { 0x400 }
public var SEEK_END: Int32 { 2 }
public var F_BARRIERFSYNC: Int32 { 85 }
public var F_FULLFSYNC: Int32 { 51 }
public func strerror(_ code: Int32) -> UnsafeMutablePointer<CChar>! { nil }
@discardableResult public func fcntl(_ descriptor: Int32, _ command: Int32) -> Int32 { 0 }
@discardableResult public func ftruncate(_ descriptor: Int32, _ length: off_t) -> Int32 { 0 }
@discardableResult public func lseek(_ descriptor: Int32, _ offset: off_t, _ origin: Int32) -> off_t { 0 }
// In C a function and a structure share the name; in Swift's own declarations they cannot, so here an initializer plays the
// function, and its result can be compared with a number.
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
