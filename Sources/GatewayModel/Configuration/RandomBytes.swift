extension [UInt8] {
    /// Bytes from the system's generator, which is fit for secrets.
    package static func random(count: Int) -> [UInt8] {
        var random = SystemRandomNumberGenerator()
        return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &random) }
    }
}
