import CCountersign
import CountersignCore
import CountersignDelivery
import CountersignTesting
import Testing

@testable import CountersignC

@Suite(.timeLimit(.minutes(5)))
struct ClientHandleTests {
    /// A mode whose calls return when the test signals `mayReturn`.
    private struct WaitingMode: Mode {
        let isCalled = Handshake()
        let mayReturn = Handshake()
        let isClosed = Handshake()

        func begin(
            _ method: String, _ arguments: Arguments, _ completion: @escaping Completion
        ) throws(CountersignError) -> Bool { false }

        func perform(_ method: String, _ arguments: Arguments) async throws(CountersignError) -> JSONValue? {
            isCalled.signal()
            await mayReturn.wait()
            return .null
        }

        func close() async { isClosed.signal() }
    }

    /// Names and values of the callbacks called so far, in order.
    private final class CallbackRecorder: Sendable {
        let lines = Lock([String]())
        let changed = Handshake()

        func callback(_ name: StaticString) -> ResultCallback {
            let entry = Entry(recorder: self, name: "\(name)")
            return ResultCallback(
                { context, json, _ in
                    guard let context, let json else { return }
                    let entry = Unmanaged<Entry>.fromOpaque(context).takeRetainedValue()
                    entry.recorder.lines.withLock { $0.append("\(entry.name) \(String(cString: json))") }
                    entry.recorder.changed.signal()
                }, Unmanaged.passRetained(entry).toOpaque())
        }

        private final class Entry: Sendable {
            let recorder: CallbackRecorder
            let name: String

            init(recorder: CallbackRecorder, name: String) {
                self.recorder = recorder
                self.name = name
            }
        }
    }

    /// The log line with the reason comes before the call returns, because the context may be freed
    /// afterwards.
    @Test func logLinesOfAFailedOpenArriveBeforeTheCallReturns() {
        let heard = Lock([String]())
        let context = Unmanaged.passUnretained(heard).toOpaque()
        let client = "{}".withCString { text in
            Clients.open(
                Text(text, -1),
                {
                    Callbacks(
                        event: { context, json, _ in
                            guard let context, let json else { return }
                            let heard = Unmanaged<Lock<[String]>>.fromOpaque(context).takeUnretainedValue()
                            heard.withLock { $0.append(String(cString: json)) }
                        }, provider: nil, context: context, keepsTexts: $0)
                }, nil, nil
            ) { _, callbacks throws(CountersignError) in
                for number in Int64(0)..<100 { callbacks.send(.integer(number)) }
                throw CountersignError(.invalidConfiguration, "no")
            }
        }
        #expect(client == nil)
        #expect(heard.withLock { $0 } == (0..<100).map { "\($0)" })
    }

    @Test func closeCompletesAfterAllResultsAndRejectsNewCalls() async {
        let (mode, recorder) = (WaitingMode(), CallbackRecorder())
        let client = ClientHandle(mode, Callbacks(event: nil, provider: nil, context: nil, keepsTexts: false))
        #expect(client.call("wait", nil, recorder.callback("result")) == COUNTERSIGN_OK)
        await mode.isCalled.wait()
        client.close(recorder.callback("closed"))
        // Like a thread that found the client before it was closed.
        #expect(client.call("wait", nil, ResultCallback(nil, nil)) == COUNTERSIGN_CLOSED)
        await mode.isClosed.wait()
        mode.mayReturn.signal()
        await recorder.changed.wait(count: 2)
        #expect(recorder.lines.withLock { $0 } == [#"result {"value":null}"#, #"closed {"value":null}"#])
    }

    /// Without the error, a misspelt `properties` would be lost silently.
    @Test func anUnknownArgumentIsAnError() async {
        let (mode, recorder) = (WaitingMode(), CallbackRecorder())
        mode.mayReturn.signal()
        let client = ClientHandle(mode, Callbacks(event: nil, provider: nil, context: nil, keepsTexts: false))
        _ = #"{"property":1}"#.withCString {
            client.call("track", Text($0, -1), recorder.callback("result"))
        }
        await recorder.changed.wait()
        let error = #""code":"invalid_argument","detail":"there is no property""#
        #expect(recorder.lines.withLock { $0.count { $0.contains(error) } } == 1)
    }
}
