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

    #if os(Linux)
        /// The program prints a URL at its first start, and fails at later starts. Then another process holds the
        /// program's output open, so that the exit is noticed before the end of the output.
        @Test func failedRestartsAreRetriedOneAtATime() async throws {
            let started = folder.path + "/started"
            let program = try folder.write(
                """
                #!/bin/bash
                if [ -e '\(started)' ]; then
                    (for n in $(ls /proc/$BASHPID/fd); do [ $n -gt 2 ] && eval "exec $n>&-"; done; exec sleep 0.1) &
                    sleep 0.02
                    exit 1
                fi
                touch '\(started)'
                echo http://127.0.0.1:1
                exec sleep 300
                """, to: "program")
            try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: program)
            let (messages, continuation) = AsyncStream.makeStream(of: String.self)
            let gateway = GatewayProcess(executable: program, dataDirectory: folder.path) {
                continuation.yield($0)
            }
            _ = try await gateway.start()
            var iterator = messages.makeAsyncIterator()
            let listening = try #require(await iterator.next())
            kill(
                try #require(listening.split(separator: " ").last.flatMap { Int32($0.dropLast(2)) }), SIGKILL)
            var later: [String] = []
            while later.count < 11, let message = await iterator.next() { later.append(message) }
            let failure = "The gateway could not be restarted: the gateway did not start"
            #expect(
                later == ["The gateway ended with signal 9; restarting it."]
                    + Array(repeating: failure, count: 10))
            #expect(gateway.restarts == 10)
        }
    #endif

    @Test func aGatewayThatCannotStartNamesTheCommandThatShowsTheReason() async throws {
        let file = try folder.write("", to: "file")
        let gateway = GatewayProcess(executable: Program.path, dataDirectory: file) { _ in }
        let error = await #expect(throws: CommandError.self) { try await gateway.start() }
        #expect(error?.code == .unavailable)
        #expect(error?.hint?.contains(file) == true)
    }
}
