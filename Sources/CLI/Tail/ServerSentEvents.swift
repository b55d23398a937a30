/// Parses server-sent events (WHATWG HTML, 9.2.5 and 9.2.6) from arbitrary pieces.
struct ServerSentEvents {
    struct Event: Equatable, Sendable {
        var name = ""
        var id: String?
        var data = ""
    }

    private var line: [UInt8] = []
    private var endsInReturn = false
    private var event = Event()

    mutating func read(_ bytes: [UInt8]) -> [Event] {
        var events: [Event] = []
        for byte in bytes {
            // A line ends with CR, LF or CR LF.
            if byte == 0x0A, endsInReturn {
                endsInReturn = false
                continue
            }
            endsInReturn = byte == 0x0D
            guard byte == 0x0A || byte == 0x0D else {
                line.append(byte)
                continue
            }
            if line.isEmpty {
                if event != Event() { events.append(event) }
                event = Event()
            } else {
                field(String(decoding: line, as: UTF8.self))
                line = []
            }
        }
        return events
    }

    private mutating func field(_ line: String) {
        let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        var value = parts.count > 1 ? parts[1] : ""
        if value.hasPrefix(" ") { value = value.dropFirst() }
        switch parts[0] {
        case "event": event.name = String(value)
        case "id": event.id = String(value)
        case "data": event.data += (event.data.isEmpty ? "" : "\n") + value
        default: break
        }
    }
}
