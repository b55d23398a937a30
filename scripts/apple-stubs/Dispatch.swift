open class DispatchSemaphore: @unchecked Sendable {
    public init(value: Int) {}
    public func wait() {}
    @discardableResult public func signal() -> Int { 0 }
}
extension DispatchQueue {
    public func suspend() {}
    public func resume() {}
}
