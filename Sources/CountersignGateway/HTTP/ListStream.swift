internal import CountersignCore
internal import Foundation

/// A long list, read page by page on a queue of its own and sent as fast as the client takes it.
final class ListStream: Sendable {
    private struct State {
        var ready: [[UInt8]] = []
        var isReading = false
        var hasEnded = false
    }

    private static let queue = DispatchQueue(label: "exports")
    private let state = Lock(State())
    private let page: @Sendable () -> [UInt8]?

    /// - Parameter page: The next page's bytes; nil behind the last. Called by one thread at a time.
    init(page: @escaping @Sendable () -> [UInt8]?) {
        self.page = page
    }

    var body: ResponseStream {
        let pull: @Sendable () -> ResponseStream.Piece = { [self] in
            let (piece, mustRead) = state.withLock { state -> (ResponseStream.Piece, Bool) in
                let next = state.ready.isEmpty ? nil : state.ready.removeFirst()
                let mustRead = !state.isReading && !state.hasEnded && state.ready.count < 2
                if mustRead { state.isReading = true }
                return (next.map { .bytes($0) } ?? (state.hasEnded ? .end : .nothing), mustRead)
            }
            if mustRead { Self.queue.async { [self] in read() } }
            return piece
        }
        return ResponseStream(pull: pull, page: page)
    }

    private func read() {
        let bytes = page()
        state.withLock { state in
            state.isReading = false
            if let bytes {
                if !bytes.isEmpty { state.ready.append(bytes) }
            } else {
                state.hasEnded = true
            }
        }
    }
}
