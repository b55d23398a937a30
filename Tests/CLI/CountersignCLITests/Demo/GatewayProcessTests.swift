import Foundation
import Testing

@testable import CountersignCLI

/// The gateway in its own process, with real signals and sockets.
@Suite(.timeLimit(.minutes(5)))
struct GatewayProcessTests {
    private let folder = TemporaryFolder()

    /// Returns the status code of the answer to `curl`, or nil without an answer.
    private func answer(_ url: URL, _ path: String) -> String? {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [
            "curl", "-s", "--max-time", "60", "-o", "/dev/null", "-w", "%{http_code}",
            url.absoluteString + path,
        ]
        let output = Pipe()
        process.standardOutput = output
        guard (try? process.run()) != nil else { return nil }
        let data = (try? output.fileHandleForReading.readToEnd()) ?? Data()
        process.waitUntilExit()
        return process.terminationStatus == 0 ? String(decoding: data, as: UTF8.self) : nil
    }

    @Test func servesUntilItIsAskedToStopAndEndsWithZero() async throws {
        let gateway = GatewayProcess(executable: Program.path, dataDirectory: folder.path + "/data") { _ in }
        let url = try await gateway.start()
        #expect(answer(url, "/readyz") == "200")
        let mode = try FileManager.default.attributesOfItem(atPath: folder.path + "/data")[.posixPermissions]
        #expect((mode as? NSNumber)?.intValue == 0o700)
        let status = await gateway.stop()
        #expect(status == 0)
        #expect(answer(url, "/livez") == nil)
    }

    /// Starts a gateway and sends it a signal once it listens. Returns its URL and later messages.
    private func signalled(
        _ signal: Int32
    ) async throws -> (gateway: GatewayProcess, url: URL, messages: AsyncStream<String>.Iterator) {
        let (messages, continuation) = AsyncStream.makeStream(of: String.self)
        let gateway = GatewayProcess(executable: Program.path, dataDirectory: folder.path + "/data") {
            continuation.yield($0)
        }
        let url = try await gateway.start()
        var iterator = messages.makeAsyncIterator()
        let started = try #require(await iterator.next())
        let process = try #require(started.split(separator: " ").last.flatMap { Int32($0.dropLast(2)) })
        kill(process, signal)
        return (gateway, url, iterator)
    }

    @Test func aHangupReloadsAndDoesNotEndIt() async throws {
        let (gateway, url, _) = try await signalled(SIGHUP)
        #expect(answer(url, "/livez") == "200")
        let status = await gateway.stop()
        #expect(status == 0)
        #expect(gateway.restarts == 0)
    }

    @Test func aKilledGatewayIsStartedAgainOnTheSamePort() async throws {
        let (gateway, url, messages) = try await signalled(SIGKILL)
        var iterator = messages
        let ended = await iterator.next()
        #expect(ended == "The gateway ended with signal 9; restarting it.")
        let restarted = try #require(await iterator.next())
        #expect(restarted.hasPrefix("The gateway listens on \(url) "))
        #expect(answer(url, "/livez") == "200")
        #expect(gateway.restarts == 1)
        let status = await gateway.stop()
        #expect(status == 0)
    }

    @Test func aGatewayThatCannotStartNamesTheCommandThatShowsTheReason() async throws {
        let file = try folder.write("", to: "file")
        let gateway = GatewayProcess(executable: Program.path, dataDirectory: file) { _ in }
        let error = await #expect(throws: CommandError.self) { try await gateway.start() }
        #expect(error?.code == .unavailable)
        #expect(error?.hint?.contains(file) == true)
    }
}
