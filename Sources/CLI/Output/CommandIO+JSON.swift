internal import CountersignCore

extension CommandIO {
    func print(_ value: JSONValue) throws {
        try print(json: value.bytes)
    }

    func print(json bytes: some Collection<UInt8>) throws { try print(shown(json: bytes)) }

    /// JSON text for output. On a terminal, control and text-direction characters are escaped.
    func shown(json bytes: some Collection<UInt8>) -> String {
        let text = String(decoding: bytes, as: UTF8.self)
        return isOutputWatched ? TerminalText.escaped(json: text) : text
    }
}
