internal import CHTTPServer
internal import CountersignCore
internal import Foundation

/// A long list that is read in pages outside the server's threads and sent as fast as the client reads it.
package final class ListStream: Sendable {
    private struct State {
        var ready: [[UInt8]] = []
        var isReading = false
        var hasEnded = false
        var hasFailed = false
    }

    private let state = Lock(State())
    private let page: @Sendable () throws -> [UInt8]?

    package init(page: @escaping @Sendable () throws -> [UInt8]?) {
        self.page = page
    }

    package var body: ResponseStream {
        let pull: @Sendable () -> ResponseStream.Piece = { [self] in
            let (piece, mustRead) = state.withLock { state -> (ResponseStream.Piece, Bool) in
                let next = state.ready.isEmpty ? nil : state.ready.removeFirst()
                let mustRead = !state.isReading && !state.hasEnded && state.ready.count < 2
                if mustRead { state.isReading = true }
                let rest: ResponseStream.Piece =
                    state.hasFailed ? .failed : state.hasEnded ? .end : .nothing
                return (next.map { .bytes($0) } ?? rest, mustRead)
            }
            if mustRead {
                // Runs in its own thread, so that waiting for the database delays neither other lists nor
                // incoming events.
                Thread.detachNewThread { [self] in
                    countersign_run_after_others()
                    read()
                }
            }
            return piece
        }
        return ResponseStream(pull: pull, page: page)
    }

    private func read() {
        let result = Result { try page() }
        state.withLock { state in
            state.isReading = false
            switch result {
            case .success(let bytes?): if !bytes.isEmpty { state.ready.append(bytes) }
            case .success(nil): state.hasEnded = true
            case .failure:
                state.hasEnded = true
                state.hasFailed = true
            }
        }
    }
}
