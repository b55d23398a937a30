internal import CountersignCore

package final class ResponseStream: Sendable {
    package enum Piece: Sendable {
        case bytes([UInt8])
        /// No data yet. The server calls again in the next pass of its loop.
        case nothing
        case end
        /// The server closes the connection, so that the client notices that the response is incomplete.
        case failed
    }

    package struct Failed: Error {}

    /// A function that reads the next page and may block; nil for an endless stream.
    package let page: (@Sendable () throws -> [UInt8]?)?
    package var isEndless: Bool { page == nil }
    private let pull: @Sendable () -> Piece
    private let ended: @Sendable () -> Void
    private let rest = Lock<ArraySlice<UInt8>>([])

    package init(
        pull: @escaping @Sendable () -> Piece, page: (@Sendable () throws -> [UInt8]?)? = nil,
        ended: @escaping @Sendable () -> Void = {}
    ) {
        self.pull = pull
        self.page = page
        self.ended = ended
    }

    deinit {
        ended()
    }

    /// Returns 0 if no data is available yet, nil at the end. Throws after ``Piece/failed``.
    package func read(into buffer: UnsafeMutableBufferPointer<UInt8>) throws(Failed) -> Int? {
        try rest.withLock { rest throws(Failed) in
            if rest.isEmpty {
                switch pull() {
                case .bytes(let bytes): rest = bytes[...]
                case .nothing: return 0
                case .end: return nil
                case .failed: throw Failed()
                }
            }
            let part = rest.prefix(buffer.count)
            _ = buffer.update(fromContentsOf: part)
            rest = rest.dropFirst(part.count)
            return part.count
        }
    }
}
