internal import Foundation

extension WriteAheadLog {
    /// An event in the log: length and CRC-32 of the fields that follow, sequence number, message id, user, session,
    /// body, and an optional provisional device id. Integers are little-endian. Texts and bodies have a length prefix.
    enum Frame {
        private static let noUser = UInt32.max

        static func write(_ row: RenderedEvent, to bytes: inout [UInt8]) {
            let start = bytes.count
            integer(UInt32(0), to: &bytes)
            integer(UInt32(0), to: &bytes)
            integer(row.sequence, to: &bytes)
            text(row.messageID, to: &bytes)
            if let user = row.userID { text(user, to: &bytes) } else { integer(noUser, to: &bytes) }
            text(row.sessionID, to: &bytes)
            integer(UInt32(row.body.count), to: &bytes)
            bytes.append(contentsOf: row.body)
            // Earlier versions ignore everything after the body.
            if let id = row.provisionalID { text(id, to: &bytes) }
            let length = UInt32(bytes.count - start - 8)
            let checksum = CRC32.of(bytes[(start + 8)...])
            for index in 0..<4 {
                bytes[start + index] = UInt8(truncatingIfNeeded: length >> (8 * UInt32(index)))
                bytes[start + 4 + index] = UInt8(truncatingIfNeeded: checksum >> (8 * UInt32(index)))
            }
        }

        private static func integer<Number: FixedWidthInteger>(_ number: Number, to bytes: inout [UInt8]) {
            withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
        }

        private static func text(_ text: String, to bytes: inout [UInt8]) {
            integer(UInt32(text.utf8.count), to: &bytes)
            bytes.append(contentsOf: text.utf8)
        }

        /// Returns the valid events of a file, including those after a damaged event. A body is JSON without zero
        /// bytes, so no part of a body can be taken for an event.
        ///
        /// An event that is cut off at the end of the file, or that consists of zeros, was never written completely. It
        /// does not count as damage. `damagedEnd` is the presumed sequence number of a damaged event at the end.
        static func read(
            contentsOf path: String
        ) throws -> (events: [RenderedEvent], isDamaged: Bool, damagedEnd: Int64?) {
            // On Linux Foundation leaks a page with each empty file that it reads.
            var status = stat()
            guard stat(path, &status) == 0, status.st_size > 0 else { return ([], false, nil) }
            let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
            var events: [RenderedEvent] = []
            var isDamaged = false
            var damagedEnd: Int64?
            var position = 0
            func take(_ frame: (event: RenderedEvent, end: Int)) {
                position = frame.end
                // Skip a repeated event, or an older event that was not removed when the file was emptied.
                if frame.event.sequence > events.last?.sequence ?? 0 { events.append(frame.event) }
            }
            while bytes.count - position > 8 {
                if let frame = frame(in: bytes, at: position) {
                    take(frame)
                    continue
                }
                let next = (position + 1..<bytes.count).first { self.frame(in: bytes, at: $0) != nil }
                if let next {
                    isDamaged = true
                    position = next
                    continue
                }
                let rest = bytes.count - position - 8
                if let frame = frame(in: bytes, at: position, length: rest) {
                    // Only the length field is damaged.
                    isDamaged = true
                    take(frame)
                    break
                }
                var header = Reader(rest: bytes[position...])
                let length = header.integer(UInt32.self).map(Int.init) ?? 0
                let isCut = length > rest
                if !isCut, !bytes[position...].allSatisfy({ $0 == 0 }) {
                    isDamaged = true
                    _ = header.integer(UInt32.self)
                    let number = header.integer(Int64.self) ?? 0
                    damagedEnd = events.last.map { $0.sequence &+ 1 } ?? (number > 0 ? number : .max)
                }
                break
            }
            return (events, isDamaged, damagedEnd)
        }

        /// Nil if no event begins at `position`. `given` replaces the length in the header.
        private static func frame(
            in bytes: [UInt8], at position: Int, length given: Int? = nil
        ) -> (event: RenderedEvent, end: Int)? {
            var header = Reader(rest: bytes[position...])
            guard let length = header.integer(UInt32.self), let checksum = header.integer(UInt32.self),
                given ?? Int(length) > 0, let content = header.take(given ?? Int(length))
            else { return nil }
            var reader = Reader(rest: content)
            // Verify the checksum last, because it is the most expensive check.
            guard let sequence = reader.integer(Int64.self), let event = reader.event(),
                CRC32.of(content) == checksum
            else { return nil }
            return (event.numbered(sequence), content.endIndex)
        }

        private struct Reader {
            var rest: ArraySlice<UInt8>

            mutating func integer<Number: FixedWidthInteger>(_ type: Number.Type) -> Number? {
                take(Number.bitWidth / 8).map { bytes in
                    bytes.reversed().reduce(0) { $0 << 8 | Number(truncatingIfNeeded: $1) }
                }
            }

            mutating func take(_ count: Int) -> ArraySlice<UInt8>? {
                guard count <= rest.count else { return nil }
                defer { rest = rest.dropFirst(count) }
                return rest.prefix(count)
            }

            mutating func bytes() -> ArraySlice<UInt8>?? {
                guard let length = integer(UInt32.self) else { return nil }
                if length == Frame.noUser { return .some(nil) }
                return take(Int(length)).map { .some($0) }
            }

            mutating func event() -> RenderedEvent? {
                guard case .some(.some(let message)) = bytes(), let user = bytes(),
                    case .some(.some(let session)) = bytes(), case .some(.some(let body)) = bytes()
                else { return nil }
                var provisionalID: String?
                if !rest.isEmpty {
                    guard case .some(.some(let id)) = bytes() else { return nil }
                    provisionalID = String(decoding: id, as: UTF8.self)
                }
                return RenderedEvent(
                    messageID: String(decoding: message, as: UTF8.self),
                    userID: user.map { String(decoding: $0, as: UTF8.self) },
                    sessionID: String(decoding: session, as: UTF8.self), body: Array(body),
                    provisionalID: provisionalID)
            }
        }
    }
}

/// The checksum of IEEE 802.3, as in gzip (RFC 1952, section 8).
enum CRC32 {
    private static let table: [UInt32] = (0..<256).map { byte in
        (0..<8).reduce(UInt32(byte)) { value, _ in value & 1 == 1 ? 0xEDB8_8320 ^ (value >> 1) : value >> 1 }
    }

    static func of(_ bytes: ArraySlice<UInt8>) -> UInt32 {
        table.withUnsafeBufferPointer { table in
            bytes.withUnsafeBufferPointer { bytes in
                var value = UInt32.max
                for byte in bytes { value = table[Int((value ^ UInt32(byte)) & 0xFF)] ^ (value >> 8) }
                return ~value
            }
        }
    }
}
