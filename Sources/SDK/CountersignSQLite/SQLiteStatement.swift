internal import CSQLite

package enum SQLValue: Hashable, Sendable {
    case null
    case integer(Int64)
    case real(Double)
    case text(String)
    case blob([UInt8])

    package static func optionalText(_ text: String?) -> SQLValue { text.map { .text($0) } ?? .null }
    package static func optionalInteger(_ number: Int64?) -> SQLValue {
        number.map { .integer($0) } ?? .null
    }
}

/// A prepared statement. Columns are numbered from 0 and placeholders from 1. `NULL` is read as 0 or as empty.
package final class SQLiteStatement {
    private static let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)

    private let handle: OpaquePointer
    private let connection: OpaquePointer
    private let sql: String

    init(handle: OpaquePointer, connection: OpaquePointer, sql: String) {
        self.handle = handle
        self.connection = connection
        self.sql = sql
    }

    /// A buffer for bound texts and blobs, so that SQLite does not allocate a copy of each.
    private var texts: UnsafeMutableRawBufferPointer?
    private var textsEnd = 0
    private var textsKept = 0
    private static let textsBytes = 8 * 1024

    deinit {
        sqlite3_finalize(handle)
        texts?.deallocate()
    }

    package func reset() {
        sqlite3_reset(handle)
        sqlite3_clear_bindings(handle)
        textsEnd = 0
        textsKept = 0
    }

    /// Preserves the texts bound so far across ``rewind()``. Texts bound later must be bound again after each rewind.
    package func keepTexts() { textsKept = textsEnd }

    /// Resets the statement without clearing its bindings.
    package func rewind() {
        sqlite3_reset(handle)
        textsEnd = textsKept
    }

    /// Executes the statement up to its next row. Returns false after the last row.
    package func step() throws(SQLiteError) -> Bool {
        switch sqlite3_step(handle) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        default: throw error()
        }
    }

    package func bind(_ values: [SQLValue]) throws(SQLiteError) {
        for (index, value) in values.enumerated() { try bind(value, at: Int32(index + 1)) }
    }

    /// SQLite copies the value.
    package func bind(_ value: SQLValue, at index: Int32) throws(SQLiteError) {
        let code: Int32
        switch value {
        case .null: code = sqlite3_bind_null(handle, index)
        case .integer(let number): code = sqlite3_bind_int64(handle, index, number)
        case .real(let number): code = sqlite3_bind_double(handle, index, number)
        case .text(var text):
            code = text.withUTF8 { utf8 in
                // The buffer of an empty string may have no address, which SQLite would treat as NULL.
                utf8.withMemoryRebound(to: CChar.self) { characters in
                    guard let base = characters.baseAddress else {
                        return sqlite3_bind_text(handle, index, "", 0, Self.transient)
                    }
                    return sqlite3_bind_text(handle, index, base, Int32(utf8.count), Self.transient)
                }
            }
        case .blob(let bytes):
            code = bytes.withUnsafeBytes { buffer in
                guard let base = buffer.baseAddress, !buffer.isEmpty else {
                    return sqlite3_bind_zeroblob(handle, index, 0)
                }
                return sqlite3_bind_blob64(handle, index, base, UInt64(buffer.count), Self.transient)
            }
        }
        guard code == SQLITE_OK else { throw error() }
    }

    /// Binds a text until ``rewind()`` or ``reset()`` (see ``keepTexts()``). Copies the text to the buffer of this
    /// statement. For many rows, this avoids the copy that SQLite allocates for each text in ``bind(_:at:)``.
    package func bind(text: String?, at index: Int32) throws(SQLiteError) {
        guard let text else { return try bind(.null, at: index) }
        let kept: UnsafeMutableRawBufferPointer?? = text.utf8.withContiguousStorageIfAvailable {
            keep(UnsafeRawBufferPointer($0))
        }
        guard let place = kept ?? nil else { return try bind(.text(text), at: index) }
        let code = sqlite3_bind_text(
            handle, index, place.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(place.count), nil)
        guard code == SQLITE_OK else { throw error() }
    }

    /// Binds a blob like ``bind(text:at:)``. If the buffer is full, SQLite copies the blob.
    package func bind(blob: UnsafeRawBufferPointer, at index: Int32) throws(SQLiteError) {
        guard let place = keep(blob) else { return try bind(.blob(Array(blob)), at: index) }
        guard sqlite3_bind_blob(handle, index, place.baseAddress, Int32(place.count), nil) == SQLITE_OK else {
            throw error()
        }
    }

    /// Copies bytes to the buffer for texts; nil if there is no room.
    private func keep(_ bytes: UnsafeRawBufferPointer) -> UnsafeMutableRawBufferPointer? {
        let buffer = texts ?? .allocate(byteCount: Self.textsBytes, alignment: 1)
        texts = buffer
        guard bytes.count <= buffer.count - textsEnd else { return nil }
        let place = UnsafeMutableRawBufferPointer(rebasing: buffer[textsEnd..<textsEnd + bytes.count])
        place.copyMemory(from: bytes)
        textsEnd += bytes.count
        return place
    }

    /// Binds a range of `bytes`, which must be UTF-8, as text without copying. `bytes` must stay valid until
    /// ``reset()``.
    package func bind(
        borrowing bytes: UnsafeBufferPointer<UInt8>, _ range: Range<Int>, at index: Int32
    ) throws(SQLiteError) {
        let part = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(bytes)[range])
        let code = part.withMemoryRebound(to: CChar.self) {
            sqlite3_bind_text(handle, index, $0.baseAddress, Int32($0.count), nil)
        }
        guard code == SQLITE_OK else { throw error() }
    }

    package func isNull(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }

    package func isNumber(_ column: Int32) -> Bool {
        [SQLITE_INTEGER, SQLITE_FLOAT].contains(sqlite3_column_type(handle, column))
    }

    package func int64(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }

    package func int(_ column: Int32) -> Int { Int(sqlite3_column_int64(handle, column)) }

    package func optionalInt64(_ column: Int32) -> Int64? { isNull(column) ? nil : int64(column) }

    package func double(_ column: Int32) -> Double { sqlite3_column_double(handle, column) }

    package func text(_ column: Int32) -> String {
        guard let text = sqlite3_column_text(handle, column) else { return "" }
        let count = Int(sqlite3_column_bytes(handle, column))
        return String(decoding: UnsafeBufferPointer(start: text, count: count), as: UTF8.self)
    }

    /// Nil if the column is not text, or not valid UTF-8, as in a damaged file.
    package func validText(_ column: Int32) -> String? {
        guard sqlite3_column_type(handle, column) == SQLITE_TEXT,
            let text = sqlite3_column_text(handle, column)
        else { return nil }
        let bytes = UnsafeBufferPointer(start: text, count: Int(sqlite3_column_bytes(handle, column)))
        let decoded = String(decoding: bytes, as: UTF8.self)
        return decoded.utf8.elementsEqual(bytes) ? decoded : nil
    }

    package func optionalText(_ column: Int32) -> String? { isNull(column) ? nil : text(column) }

    /// Returns false for `NULL`. In a damaged file, the bytes may not be valid UTF-8.
    package func append(_ column: Int32, to output: inout [UInt8]) -> Bool {
        guard let text = sqlite3_column_text(handle, column) else { return false }
        let count = Int(sqlite3_column_bytes(handle, column))
        output.append(contentsOf: UnsafeBufferPointer(start: text, count: count))
        return true
    }

    package func blob(_ column: Int32) -> [UInt8] {
        guard let bytes = sqlite3_column_blob(handle, column) else { return [] }
        return [UInt8](UnsafeRawBufferPointer(start: bytes, count: Int(sqlite3_column_bytes(handle, column))))
    }

    /// The bytes are valid only during the call.
    package func withBlob<Value>(_ column: Int32, _ body: (UnsafeRawBufferPointer) -> Value) -> Value {
        let start = sqlite3_column_blob(handle, column)
        return body(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(handle, column))))
    }

    var virtualMachineSteps: Int { Int(sqlite3_stmt_status(handle, SQLITE_STMTSTATUS_VM_STEP, 0)) }

    private func error() -> SQLiteError { SQLiteError(of: connection, sql: sql) }
}
