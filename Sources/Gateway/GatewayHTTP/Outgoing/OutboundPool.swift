internal import CCurl
internal import CountersignCore
internal import CountersignCurl
internal import Foundation

/// Sends requests on one thread. A server that hangs, or sends without end, delays only the request to it.
package final class OutboundPool: Sendable {
    package typealias Completion = @Sendable (Result<OutboundRequest.Answer, OutboundRequest.Failure>) -> Void

    private struct Waiting: Sendable {
        let request: OutboundRequest
        let completion: Completion
    }

    private struct State {
        var waiting: [Waiting] = []
        var isEnding = false
    }

    /// libcurl's multi handle. Other threads only wake it, which libcurl allows.
    private struct Multi: @unchecked Sendable {
        let handle: UnsafeMutableRawPointer
    }

    /// The maximum wait in milliseconds. After each wait, libcurl asks every request whether it is cancelled.
    private static let pollMilliseconds: Int32 = 1_000

    private let multi: Multi?
    private let state = Lock(State())

    package init() {
        multi = CurlHandle.isReady ? curl_multi_init().map { Multi(handle: $0) } : nil
        guard let multi else { return }
        let thread = Thread { [state] in Self.run(multi, state) }
        thread.name = "outbound"
        thread.start()
    }

    deinit {
        state.withLock { state in
            state.isEnding = true
            // Under the lock, because the thread frees the handle after reading `isEnding`.
            if let multi { _ = curl_multi_wakeup(multi.handle) }
        }
    }

    /// Sends a request, and calls `completion` once, usually on the pool's thread. `completion` must not block.
    package func send(_ request: OutboundRequest, _ completion: @escaping Completion) {
        guard let multi else {
            return completion(.failure(.init(.connection, reason: "libcurl did not start")))
        }
        state.withLock { $0.waiting.append(Waiting(request: request, completion: completion)) }
        _ = curl_multi_wakeup(multi.handle)
    }

    /// Ends once the pool is deallocated and no request is running.
    private static func run(_ multi: Multi, _ state: Lock<State>) {
        var running: [UnsafeMutableRawPointer: (transfer: OutboundTransfer, completion: Completion)] = [:]
        defer { _ = curl_multi_cleanup(multi.handle) }
        while true {
            let (waiting, isEnding) = state.withLock { state in
                defer { state.waiting = [] }
                return (state.waiting, state.isEnding)
            }
            for item in waiting {
                do throws(OutboundRequest.Failure) {
                    let transfer = try OutboundTransfer(item.request)
                    guard curl_multi_add_handle(multi.handle, transfer.curl.handle) == CURLM_OK else {
                        throw OutboundRequest.Failure(.connection, reason: "libcurl rejected the request")
                    }
                    running[transfer.curl.handle] = (transfer, item.completion)
                } catch {
                    item.completion(.failure(error))
                }
            }
            if isEnding, running.isEmpty { return }
            var count: Int32 = 0
            _ = curl_multi_perform(multi.handle, &count)
            var left: Int32 = 0
            while let message = curl_multi_info_read(multi.handle, &left) {
                guard message.pointee.msg == CURLMSG_DONE, let handle = message.pointee.easy_handle else {
                    continue
                }
                let code = message.pointee.data.result
                _ = curl_multi_remove_handle(multi.handle, handle)
                guard let (transfer, completion) = running.removeValue(forKey: handle) else { continue }
                do throws(OutboundRequest.Failure) {
                    completion(.success(try transfer.answer(code)))
                } catch {
                    completion(.failure(error))
                }
            }
            _ = curl_multi_poll(multi.handle, nil, 0, pollMilliseconds, nil)
        }
    }
}
