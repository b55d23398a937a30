internal import CPostgreSQL
internal import CountersignSQLite

enum ServerType {
    static let unknown: Oid = 0
    static let bytea: Oid = 17
    static let int8: Oid = 20
    static let int4: Oid = 23
    static let text: Oid = 25
    static let float8: Oid = 701
    static let int4Array: Oid = 1007
    static let textArray: Oid = 1009
    static let int8Array: Oid = 1016
}

/// The values of a statement in PostgreSQL's binary format.
///
/// U+FFFD replaces U+0000, which PostgreSQL cannot store. One text with U+0000 would fail the whole transaction.
struct Parameters {
    private(set) var types: [Oid] = []
    private var bytes: [UInt8] = []
    private var starts: [Int?] = []
    private var lengths: [Int32] = []

    init() {}

    init(_ values: [SQLValue]) {
        for value in values { add(value) }
    }

    var count: Int { types.count }

    mutating func reserve(_ count: Int) { bytes.reserveCapacity(count + 1) }

    mutating func add(_ value: SQLValue) {
        switch value {
        case .null:
            types.append(ServerType.unknown)
            starts.append(nil)
            lengths.append(0)
        case .integer(let number): add(ServerType.int8, bigEndian: UInt64(bitPattern: number))
        case .real(let number): add(ServerType.float8, bigEndian: number.bitPattern)
        case .text(let text):
            var text = text.holdable
            text.withUTF8 { add(ServerType.text, UnsafeRawBufferPointer($0)) }
        case .blob(let blob): blob.withUnsafeBytes { add(ServerType.bytea, $0) }
        }
    }

    private mutating func add(_ type: Oid, bigEndian number: UInt64) {
        withUnsafeBytes(of: number.bigEndian) { add(type, $0) }
    }

    mutating func add(_ type: Oid, _ value: UnsafeRawBufferPointer) {
        types.append(type)
        starts.append(bytes.count)
        lengths.append(Int32(value.count))
        bytes.append(contentsOf: value)
    }

    mutating func add(texts: [String?]) {
        var array = BinaryArray(.text, count: texts.count)
        for text in texts { array.add(text) }
        array.bytes.withUnsafeBytes { add(ServerType.textArray, $0) }
    }

    mutating func add(integers: [Int64]) {
        var array = BinaryArray(.int8, count: integers.count)
        for integer in integers { array.add(integer) }
        array.bytes.withUnsafeBytes { add(ServerType.int8Array, $0) }
    }

    func withPointers<Value>(
        _ body: (
            _ values: UnsafePointer<UnsafePointer<CChar>?>?, _ lengths: UnsafePointer<Int32>?,
            _ formats: UnsafePointer<Int32>?
        ) -> Value
    ) -> Value {
        bytes.withUnsafeBytes { room in
            // libpq treats a null pointer as NULL, so an empty value needs an address.
            let base = room.baseAddress ?? UnsafeRawPointer(bitPattern: 1)
            let values = starts.map { start in
                start.flatMap { base?.advanced(by: $0).assumingMemoryBound(to: CChar.self) }
            }
            return body(values, lengths, [Int32](repeating: 1, count: count))
        }
    }
}
