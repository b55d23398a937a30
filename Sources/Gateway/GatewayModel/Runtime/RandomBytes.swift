extension [UInt8] {
    /// Random bytes from the system's generator, suitable for secrets.
    package static func random(count: Int) -> [UInt8] {
        var random = SystemRandomNumberGenerator()
        return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &random) }
    }
}
