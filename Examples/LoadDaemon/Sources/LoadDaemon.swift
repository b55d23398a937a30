import Countersign
import Dispatch
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@main
struct LoadDaemon {
    static func main() async throws {
        let environment = ProcessInfo.processInfo.environment
        guard let url = environment["COUNTERSIGN_URL"].flatMap(URL.init(string:)),
            let writeKey = environment["COUNTERSIGN_WRITE_KEY"]
        else { fail("set COUNTERSIGN_URL and COUNTERSIGN_WRITE_KEY") }
        let seconds = option("--seconds").flatMap(Double.init) ?? 30

        var configuration = CountersignConfiguration(endpoint: url, writeKey: writeKey)
        configuration.dataDirectory = environment["STATE_DIRECTORY"].map { URL(fileURLWithPath: $0) }
        if let tokenURL = environment["TOKEN_URL"].flatMap(URL.init(string:)) {
            configuration.tokenProvider = { _ in try await token(from: tokenURL) }
        }
        let client = try CountersignClient(configuration: configuration)
        if let user = option("--user") { client.identify(userID: user) }

        // Records until the task is cancelled after a signal.
        let recording = Task {
            while !Task.isCancelled {
                if let reading = LoadReading.now() { client.track("load", properties: reading.properties) }
                try? await Task.sleep(nanoseconds: UInt64(seconds * 1e9))
            }
        }
        await untilAsked()
        recording.cancel()
        let result = await client.flush()
        await client.close()
        print("at the end: \(result)")
    }

    /// Requests a token for this machine from your backend; see Examples/TokenBackend.
    static func token(from url: URL) async throws -> String {
        struct Answer: Decodable { let token: String }
        let (body, _) = try await URLSession.shared.data(from: url)
        return try JSONDecoder().decode(Answer.self, from: body).token
    }

    /// Returns after SIGTERM or SIGINT.
    static func untilAsked() async {
        let (signals, continuation) = AsyncStream.makeStream(of: Void.self)
        let sources = [SIGTERM, SIGINT].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler { continuation.yield() }
            source.activate()
            return source
        }
        print("recording")
        fflush(nil)
        _ = await signals.first { _ in true }
        withExtendedLifetime(sources) {}
    }

    static func option(_ name: String) -> String? {
        let arguments = CommandLine.arguments
        guard let index = arguments.firstIndex(of: name), index + 1 < arguments.count else { return nil }
        return arguments[index + 1]
    }

    static func fail(_ text: String) -> Never {
        FileHandle.standardError.write(Data((text + "\n").utf8))
        exit(2)
    }
}
