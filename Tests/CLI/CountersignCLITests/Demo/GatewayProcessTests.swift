import Foundation
import TestSupport
import Testing

@testable import CountersignCLI

/// The gateway in its own process, with real signals and sockets.
@Suite(.timeLimit(.minutes(5)))
struct GatewayProcessTests {
    private let folder = TemporaryFolder()

    /// Returns the status code of the answer to `curl`, or nil without an answer.
    private func answer(_ url: URL, _ path: String) throws -> String? {
        let arguments = ["curl", "-s", "--max-time", "60", "-o", "/dev/null", "-w", "%{http_code}"]
        let (status, output) = try runProgram(arguments + [url.absoluteString + path])
        return status == 0 ? String(decoding: output, as: UTF8.self) : nil
    }

    @Test func aGatewayServesUntilItIsStoppedAndExitsWithZero() async throws {
        let gateway = GatewayProcess(executable: Program.path, dataDirectory: folder.path + "/data") { _ in }
        let url = try await gateway.start()
        #expect(try answer(url, "/readyz") == "200")
        let mode = try FileManager.default.attributesOfItem(atPath: folder.path + "/data")[.posixPermissions]
        #expect((mode as? NSNumber)?.intValue == 0o700)
        let status = await gateway.stop()
        #expect(status == 0)
        #expect(try answer(url, "/livez") == nil)
    }

    /// Starts a gateway and sends it a signal once it listens. Returns the gateway, its URL and later messages.
    /// `program` runs instead of the built gateway, and `hear` gets each message.
    private func signalled(
        _ signal: Int32, program: String = Program.path,
        hear: @escaping @Sendable (String) -> Void = { _ in }
    ) async throws -> (gateway: GatewayProcess, url: URL, messages: AsyncStream<String>.Iterator) {
        let (messages, continuation) = AsyncStream.makeStream(of: String.self)
        let gateway = GatewayProcess(executable: program, dataDirectory: folder.path + "/data") {
            continuation.yield($0)
            hear($0)
        }
        let url = try await gateway.start()
        var iterator = messages.makeAsyncIterator()
        let started = try #require(await iterator.next())
        let process = try #require(started.split(separator: " ").last.flatMap { Int32($0.dropLast(2)) })
        kill(process, signal)
        return (gateway, url, iterator)
    }

    @Test func aHangupDoesNotEndTheGateway() async throws {
        let (gateway, url, _) = try await signalled(SIGHUP)
        #expect(try answer(url, "/livez") == "200")
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
        #expect(try answer(url, "/livez") == "200")
        #expect(gateway.restarts == 1)
        let status = await gateway.stop()
        #expect(status == 0)
    }

    #if os(Linux)
        /// The program prints a URL at its first start, and fails at later starts. Then another process holds the
        /// program's output open until this process has collected the exit status. Only then the output ends.
        @Test func failedRestartsAreRetriedOneAtATime() async throws {
            let started = folder.path + "/started"
            let program = try folder.write(
                """
                #!/bin/bash
                if [ -e '\(started)' ]; then
                    (for n in $(ls /proc/$BASHPID/fd); do [ $n -gt 2 ] && eval "exec $n>&-"; done
                    while kill -0 $$ 2> /dev/null; do :; done) &
                    exit 1
                fi
                touch '\(started)'
                echo http://127.0.0.1:1
                exec sleep 300
                """, to: "program")
            try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: program)
            let (gateway, _, messages) = try await signalled(SIGKILL, program: program)
            var iterator = messages
            var later: [String] = []
            while later.count < 11, let message = await iterator.next() { later.append(message) }
            let failure = "The gateway could not be restarted: the gateway did not start"
            #expect(
                later == ["The gateway ended with signal 9; restarting it."]
                    + Array(repeating: failure, count: 10))
            #expect(gateway.restarts == 10)
        }
    #endif

    @Test func aGatewayStoppedBeforeItsRestartIsNotStarted() async throws {
        let isStopped = DispatchSemaphore(value: 0)
        let (gateway, _, messages) = try await signalled(SIGKILL) {
            if $0.hasSuffix("restarting it.") { isStopped.wait() }
        }
        var iterator = messages
        _ = await iterator.next()
        #expect(await gateway.stop() == SIGKILL)
        isStopped.signal()
        #expect(await iterator.next() == "The gateway could not be restarted: it was stopped")
    }

    @Test func aGatewayThatCannotStartNamesTheCommandThatShowsTheReason() async throws {
        let file = try folder.write("", to: "file")
        let gateway = GatewayProcess(executable: Program.path, dataDirectory: file) { _ in }
        let error = await #expect(throws: CommandError.self) { try await gateway.start() }
        #expect(error?.code == .unavailable)
        #expect(error?.hint?.contains(file) == true)
    }
}
