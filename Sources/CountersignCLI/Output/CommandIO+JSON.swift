internal import CountersignCore

extension CommandIO {
    /// Prints a JSON value on a line of its own.
    func print(_ value: JSONValue) throws {
        try print(json: value.bytes)
    }

    /// Prints JSON text on a line of its own.
    func print(json bytes: some Collection<UInt8>) throws { try print(shown(json: bytes)) }

    /// JSON text as it is printed: unchanged except on a terminal.
    func shown(json bytes: some Collection<UInt8>) -> String {
        let text = String(decoding: bytes, as: UTF8.self)
        return isOutputWatched ? TerminalText.escaped(json: text) : text
    }
}
