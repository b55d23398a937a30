internal import CountersignCore

/// The body of an answer that comes piece by piece.
package final class ResponseStream: Sendable {
    /// What there is to send at the moment.
    package enum Piece: Sendable {
        case bytes([UInt8])
        /// Nothing yet; asked again at the server's next pass.
        case nothing
        case end
    }

    /// The next page, for whoever may wait for it; nil for what never ends.
    package let page: (@Sendable () -> [UInt8]?)?
    private let pull: @Sendable () -> Piece
    private let ended: @Sendable () -> Void
    private let rest = Lock<ArraySlice<UInt8>>([])

    /// - Parameters:
    ///   - pull: The next piece; called on the server's thread, so it must not block.
    ///   - page: The same page by page, for whoever may wait; nil behind the last.
    ///   - ended: Called once the last byte is sent or the client has left.
    package init(
        pull: @escaping @Sendable () -> Piece, page: (@Sendable () -> [UInt8]?)? = nil,
        ended: @escaping @Sendable () -> Void = {}
    ) {
        self.pull = pull
        self.page = page
        self.ended = ended
    }

    deinit {
        ended()
    }

    /// Fills the buffer.
    ///
    /// - Returns: Bytes written, 0 when there is nothing yet, nil at the end.
    func read(into buffer: UnsafeMutableBufferPointer<UInt8>) -> Int? {
        rest.withLock { rest in
            if rest.isEmpty {
                switch pull() {
                case .bytes(let bytes): rest = bytes[...]
                case .nothing: return 0
                case .end: return nil
                }
            }
            let part = rest.prefix(buffer.count)
            _ = buffer.update(fromContentsOf: part)
            rest = rest.dropFirst(part.count)
            return part.count
        }
    }
}
