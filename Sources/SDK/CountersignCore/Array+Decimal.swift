extension [UInt8] {
    /// Appends a number in decimal digits, without creating a `String`.
    package mutating func append(decimal number: Int64) {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { place in
            var rest = number.magnitude
            var start = place.count
            repeat {
                start -= 1
                place[start] = UInt8(ascii: "0") + UInt8(rest % 10)
                rest /= 10
            } while rest > 0
            if number < 0 {
                start -= 1
                place[start] = UInt8(ascii: "-")
            }
            append(contentsOf: UnsafeMutableBufferPointer(rebasing: place[start...]))
        }
    }
}
