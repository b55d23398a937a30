internal import CountersignCore
internal import GatewayModel

/// The ``EventIdentity`` of an event as a row of `message_id`. All writers lock these rows in the same order.
struct MessageKey: Comparable {
    let bucket: Int32
    /// The first 16 bytes of the id, in which most ids differ.
    private let start: (UInt64, UInt64)
    let id: String
    let app: String
    /// The sender, as ``EventSender/text``.
    let whose: String

    init(_ event: EventIdentity) {
        var id = event.messageID
        (start, bucket) = id.withUTF8 { (Self.start(of: $0), Self.bucket(of: $0)) }
        self.id = id
        app = event.appID
        whose = event.sender.text
    }

    /// Compares bytes, because Swift treats canonically equivalent texts as equal.
    static func < (one: MessageKey, other: MessageKey) -> Bool {
        if one.bucket != other.bucket { return one.bucket < other.bucket }
        if one.start != other.start { return one.start < other.start }
        for (a, b) in [(one.id, other.id), (one.app, other.app), (one.whose, other.whose)] {
            if a.utf8.lexicographicallyPrecedes(b.utf8) { return true }
            if b.utf8.lexicographicallyPrecedes(a.utf8) { return false }
        }
        return false
    }

    static func == (one: MessageKey, other: MessageKey) -> Bool {
        one.start == other.start && one.id.utf8.elementsEqual(other.id.utf8)
            && one.app.utf8.elementsEqual(other.app.utf8) && one.whose.utf8.elementsEqual(other.whose.utf8)
    }

    private static func start(of id: UnsafeBufferPointer<UInt8>) -> (UInt64, UInt64) {
        var words: (UInt64, UInt64) = (0, 0)
        withUnsafeMutableBytes(of: &words) { $0.copyBytes(from: id.prefix(16)) }
        return (UInt64(bigEndian: words.0), UInt64(bigEndian: words.1))
    }

    static func bucket(of id: String) -> Int32 {
        var id = id
        return id.withUTF8 { bucket(of: $0) }
    }

    /// The day of a UUIDv7. Other ids get a bucket from -16 to -1 by their hash.
    private static func bucket(of id: UnsafeBufferPointer<UInt8>) -> Int32 {
        if id.count == 36, id[8] == UInt8(ascii: "-"), id[13] == UInt8(ascii: "-"),
            id[14] == UInt8(ascii: "7")
        {
            var milliseconds: Int64 = 0
            for index in [0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12] {
                guard let digit = digit(id[index]) else { return other(id) }
                milliseconds = milliseconds << 4 | digit
            }
            return Int32(clamping: milliseconds / 86_400_000)
        }
        return other(id)
    }

    private static func digit(_ byte: UInt8) -> Int64? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): Int64(byte - UInt8(ascii: "0"))
        case UInt8(ascii: "a")...UInt8(ascii: "f"): Int64(byte - UInt8(ascii: "a")) + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): Int64(byte - UInt8(ascii: "A")) + 10
        default: nil
        }
    }

    /// The bucket of an id without a date, from -16 to -1, by its FNV-1a hash.
    private static func other(_ id: UnsafeBufferPointer<UInt8>) -> Int32 {
        -1 - Int32(id.reduce(0x811C_9DC5 as UInt32) { ($0 ^ UInt32($1)) &* 0x0100_0193 } >> 28)
    }
}
