// swift-format-ignore-file
public import Foundation

@available(iOS 13.0, macOS 10.15, *)
public protocol HashFunction {}
@available(iOS 13.0, macOS 10.15, *)
public struct SHA256: HashFunction, Sendable {}
@available(iOS 13.0, macOS 10.15, *)
public struct SymmetricKey: ContiguousBytes, Sendable {
    public init<D: ContiguousBytes>(data: D) {}
    public func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R { fatalError() }
}
@available(iOS 13.0, macOS 10.15, *)
public struct HMAC<H: HashFunction>: Sendable {
    public static func isValidAuthenticationCode<C: ContiguousBytes, D: DataProtocol>(
        _ code: C, authenticating data: D, using key: SymmetricKey
    ) -> Bool { fatalError() }
}
