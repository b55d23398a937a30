internal import CountersignCore

extension CommandIO {
    /// Prints a JSON value on a line of its own.
    func print(_ value: JSONValue) throws {
        try print(String(decoding: value.bytes, as: UTF8.self))
    }
}
