/// Received bytes that are not yet handled. The memory comes from the event loop's ``BufferPool``.
struct InputBuffer: ~Copyable {
    /// The size of a pooled buffer. It fits the head and the body of a usual request.
    static let usualBytes = 4 * 1024

    private var memory = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    private var start = 0
    private var end = 0

    var isEmpty: Bool { start == end }
    var count: Int { end - start }
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: memory[start..<end]) }
    var room: UnsafeMutableRawBufferPointer { UnsafeMutableRawBufferPointer(rebasing: memory[end...]) }

    /// Makes room for more bytes: moves the bytes to the front, or to a larger buffer.
    mutating func makeRoom(_ pool: inout BufferPool) {
        guard end == memory.count else { return }
        if memory.count == 0 {
            memory = pool.take()
        } else if start > 0 {
            memory.copyMemory(from: bytes)
            (start, end) = (0, count)
        } else {
            let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: memory.count * 2, alignment: 16)
            larger.copyMemory(from: bytes)
            pool.give(memory)
            memory = larger
        }
    }

    mutating func add(_ count: Int) { end += count }

    /// Appends bytes. The existing bytes may move in memory.
    mutating func append(_ bytes: UnsafeRawBufferPointer, _ pool: inout BufferPool) {
        var rest = bytes
        while !rest.isEmpty {
            makeRoom(&pool)
            let part = min(rest.count, room.count)
            room.copyMemory(from: UnsafeRawBufferPointer(rebasing: rest[..<part]))
            add(part)
            rest = UnsafeRawBufferPointer(rebasing: rest[part...])
        }
    }

    mutating func drop(_ count: Int) { start += count }

    /// Returns the memory to the pool if all bytes were handled.
    mutating func release(_ pool: inout BufferPool) {
        guard start == end, memory.count > 0 else { return }
        pool.give(memory)
        memory = UnsafeMutableRawBufferPointer(start: nil, count: 0)
        (start, end) = (0, 0)
    }

    mutating func clear(_ pool: inout BufferPool) {
        start = end
        release(&pool)
    }
}

struct BufferPool: ~Copyable {
    private static let most = 256
    private var free: ContiguousArray<UnsafeMutableRawBufferPointer> = []

    deinit {
        for buffer in free { buffer.deallocate() }
    }

    mutating func take() -> UnsafeMutableRawBufferPointer {
        free.popLast() ?? .allocate(byteCount: InputBuffer.usualBytes, alignment: 16)
    }

    mutating func give(_ buffer: UnsafeMutableRawBufferPointer) {
        if buffer.count == InputBuffer.usualBytes, free.count < Self.most {
            free.append(buffer)
        } else {
            buffer.deallocate()
        }
    }
}

/// Bytes to send, in memory that an event loop reuses for each connection.
struct OutputBuffer: ~Copyable {
    private var memory: UnsafeMutableRawBufferPointer
    private(set) var count = 0

    init(capacity: Int) {
        memory = .allocate(byteCount: capacity, alignment: 16)
    }

    deinit {
        memory.deallocate()
    }

    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: memory[..<count]) }

    mutating func removeAll() { count = 0 }

    mutating func append(_ bytes: UnsafeRawBufferPointer) {
        reserve(bytes.count)
        UnsafeMutableRawBufferPointer(rebasing: memory[count...]).copyMemory(from: bytes)
        count += bytes.count
    }

    mutating func append(_ text: StaticString) {
        append(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    mutating func append(_ text: String) {
        guard text.utf8.withContiguousStorageIfAvailable({ append(UnsafeRawBufferPointer($0)) }) == nil else {
            return
        }
        // The string is bridged from Objective-C and not contiguous.
        var copy = text
        copy.withUTF8 { append(UnsafeRawBufferPointer($0)) }
    }

    /// Appends a non-negative number in decimal digits.
    mutating func append(_ number: Int) {
        reserve(20)
        var rest = number
        var digits = 0
        repeat {
            digits += 1
            rest /= 10
        } while rest > 0
        rest = number
        for index in (count..<count + digits).reversed() {
            memory[index] = UInt8(ascii: "0") + UInt8(rest % 10)
            rest /= 10
        }
        count += digits
    }

    /// Appends a header field. Control characters, which would end the value, become spaces.
    mutating func appendField(_ name: String, _ value: String) {
        append(name)
        append(": ")
        let start = count
        append(value)
        for index in start..<count where memory[index] < 0x20 { memory[index] = 0x20 }
        append("\r\n")
    }

    private mutating func reserve(_ more: Int) {
        guard count + more > memory.count else { return }
        let larger = UnsafeMutableRawBufferPointer.allocate(
            byteCount: max(memory.count * 2, count + more), alignment: 16)
        larger.copyMemory(from: bytes)
        memory.deallocate()
        memory = larger
    }
}
