internal import CountersignCore
internal import CountersignSQLite

/// The texts of an event in one byte buffer. Most texts are only copied to JSON, so no strings are created.
struct EventTexts: Sendable {
    /// The texts in the order of storage.
    enum Name: Int {
        case messageID, type, userID, anonymousID, name
        case keyID, enforcement, dialect, requestID, tokenID
    }

    private var bytes: [UInt8] = []
    /// The end of each text, where the next one begins.
    private var ends = SIMD16<Int32>(repeating: 0)
    /// A bit for each text that is not nil.
    private var present: UInt16 = 0

    /// `texts` has an element for each ``Name``, in the same order.
    init(_ texts: [String?]) {
        for (index, text) in texts.enumerated() {
            if let text {
                present |= 1 << UInt16(index)
                bytes.append(contentsOf: text.utf8)
            }
            ends[index] = Int32(bytes.count)
        }
    }

    /// Reads the texts of the first names from `columns` and all later texts from `others`. Without `others`, the later
    /// texts are nil. If the request id is NULL, the id is read from `uuid`, a column of 16 bytes.
    init(
        _ row: SQLiteStatement, columns: ClosedRange<Int32>, _ others: ClosedRange<Int32>?, uuid: Int32
    ) {
        bytes.reserveCapacity(256)
        var index = 0
        func add(_ columns: ClosedRange<Int32>) {
            for column in columns {
                let isThere =
                    row.append(column, to: &bytes)
                    || index == Name.requestID.rawValue
                        && row.withBlob(uuid) { blob in
                            UUIDText.append(blob, to: &bytes)
                            return !blob.isEmpty
                        }
                if isThere { present |= 1 << UInt16(index) }
                ends[index] = Int32(bytes.count)
                index += 1
            }
        }
        add(columns)
        if let others {
            add(others)
        } else {
            for index in index..<ends.scalarCount { ends[index] = Int32(bytes.count) }
        }
    }

    subscript(name: Name) -> String? {
        guard let range = range(name) else { return nil }
        return String(decoding: bytes[range], as: UTF8.self)
    }

    private func range(_ name: Name) -> Range<Int>? {
        let index = name.rawValue
        guard present & 1 << UInt16(index) != 0 else { return nil }
        return (index == 0 ? 0 : Int(ends[index - 1]))..<Int(ends[index])
    }

    /// Appends the JSON members that `body` writes: these texts, and `extra`, a word that needs no escapes.
    func withWriter(of extra: String, to output: inout [UInt8], _ body: (inout Writer) -> Void) {
        bytes.withUnsafeBufferPointer { bytes in
            // An escaped byte becomes at most six bytes. 512 bytes suffice for member names and numbers.
            let isPlain = Self.isPlain(bytes)
            let most = (isPlain ? 1 : 6) * bytes.count + extra.utf8.count + 512
            withUnsafeTemporaryAllocation(of: UInt8.self, capacity: most) { room in
                var writer = Writer(texts: self, bytes: bytes, isPlain: isPlain, room: room)
                body(&writer)
                output.append(contentsOf: UnsafeBufferPointer(rebasing: room[..<writer.count]))
            }
        }
    }

    /// Whether all bytes are ASCII that needs no escapes in JSON.
    private static func isPlain(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        var others: UInt8 = 0
        // Without branches, so that the compiler can vectorize the loop.
        for byte in bytes {
            let isOther =
                (byte &- 0x20 > 0x5E ? 1 : 0) | (byte == UInt8(ascii: "\"") ? 1 : 0)
                | (byte == UInt8(ascii: "\\") ? 1 : 0) as UInt8
            others |= isOther
        }
        return others == 0
    }
}

extension EventTexts {
    /// Writes members of a JSON object into a buffer of sufficient size.
    struct Writer {
        let texts: EventTexts
        let bytes: UnsafeBufferPointer<UInt8>
        let isPlain: Bool
        let room: UnsafeMutableBufferPointer<UInt8>
        private(set) var count = 0

        /// `start` precedes the value: a comma, the member's name and a colon.
        mutating func text(_ start: StaticString, _ name: Name) {
            put(start)
            guard let range = texts.range(name) else { return put("null") }
            if isPlain {
                put(UInt8(ascii: "\""))
                put(UnsafeBufferPointer(rebasing: bytes[range]))
                put(UInt8(ascii: "\""))
            } else {
                var escaped: [UInt8] = []
                JSONValue.write(String(decoding: bytes[range], as: UTF8.self), to: &escaped)
                escaped.withUnsafeBufferPointer { put($0) }
            }
        }

        mutating func number(_ start: StaticString, _ number: Int64?) {
            put(start)
            guard let number else { return put("null") }
            if number < 0 { put(UInt8(ascii: "-")) }
            var rest = number.magnitude
            var first = count
            repeat {
                put(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10))
                rest /= 10
            } while rest > 0
            var last = count - 1
            while first < last {
                room.swapAt(first, last)
                first += 1
                last -= 1
            }
        }

        /// The word must not need escapes.
        mutating func word(_ start: StaticString, _ word: String) {
            put(start)
            put(UInt8(ascii: "\""))
            var word = word
            word.withUTF8 { put($0) }
            put(UInt8(ascii: "\""))
        }

        mutating func put(_ text: StaticString) {
            put(UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
        }

        private mutating func put(_ byte: UInt8) {
            room[count] = byte
            count += 1
        }

        private mutating func put(_ bytes: UnsafeBufferPointer<UInt8>) {
            _ = UnsafeMutableBufferPointer(rebasing: room[count...]).update(fromContentsOf: bytes)
            count += bytes.count
        }
    }
}
