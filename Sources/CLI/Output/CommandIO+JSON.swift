internal import CountersignCore

extension CommandIO {
    func print(_ value: JSONValue) throws {
        try print(json: value.bytes)
    }

    func print(json bytes: some Collection<UInt8>) throws { try print(shown(json: bytes)) }

    /// JSON text for output: escaped on a terminal, otherwise unchanged.
    func shown(json bytes: some Collection<UInt8>) -> String {
        let text = String(decoding: bytes, as: UTF8.self)
        return isOutputWatched ? TerminalText.escaped(json: text) : text
    }
}
