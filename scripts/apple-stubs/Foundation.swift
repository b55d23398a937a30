extension Date {
    public static func += (date: inout Date, interval: TimeInterval) {}
}
extension FileManager {
    public var temporaryDirectory: URL { fatalError() }
}
