internal import CountersignCore

/// The body of an answer that comes piece by piece.
package final class ResponseStream: Sendable {
    /// What there is to send now.
    package enum Piece: Sendable {
        case bytes([UInt8])
        /// Nothing yet; asked again at the server's next pass.
        case nothing
        case end
        /// The rest is not available: the connection is closed, so that nobody takes what came for the whole.
        case failed
    }

    /// Nothing more comes, and what came is not all.
    package struct Failed: Error {}

    /// The next page, for whoever may wait for it; nil for what never ends.
    package let page: (@Sendable () throws -> [UInt8]?)?
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

    /// Fills the buffer. Returns bytes written, 0 when there is nothing yet, nil at the end. Throws when the rest
    /// is not available.
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
