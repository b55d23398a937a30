import CountersignCrypto
import CountersignGateway
import CountersignGatewayTesting
import Foundation
import GatewayModel
import GatewayStorage
import Testing

@testable import CountersignCLI

/// Runs the program on a pseudo-terminal.
@Suite(.timeLimit(.minutes(5)))
struct TerminalTests {
    private let folder = TemporaryFolder()

    private func shell(_ environment: [String: String] = [:]) -> Shell {
        let own = ["COUNTERSIGN_DATA": folder.path + "/data", "HOME": folder.path]
        return Shell(folder: folder.path, environment: own.merging(environment) { $1 })
    }

    private func start(_ script: String, environment: [String: String] = [:]) throws -> TerminalProgram {
        try shell(environment).onTerminal("exec " + script)
    }

    @Test(arguments: [
        "admin user create kim", "admin user set-password kim",
        "profile add live --server http://127.0.0.1:1",
    ])
    func controlCEndsAHiddenPrompt(command: String) async throws {
        _ = try AppDirectory(dataDirectory: folder.path + "/data")
        let program = try start("countersign " + command)
        try await program.screen.wait { $0.contains(": ") }
        #expect(!program.echoes)
        program.type("secret\u{03}")
        #expect(try await program.end() == -SIGINT)
        #expect(program.echoes && !program.screen.text.contains("secret"))
    }

    @Test func aTerminatedHiddenPromptRestoresTheEcho() async throws {
        _ = try AppDirectory(dataDirectory: folder.path + "/data")
        let program = try start("countersign admin user create kim")
        try await program.screen.wait { $0.contains(": ") }
        #expect(!program.echoes)
        program.terminate()
        #expect(try await program.end() == -SIGTERM)
        #expect(program.echoes)
    }

    /// Standard output is a file.
    @Test func theProgressLineFitsTheWidthOfStandardError() async throws {
        _ = try AppDirectory(dataDirectory: folder.path + "/data").createApp(id: "shop")
        let program = try start("sh -c 'stty cols 8; countersign backup create --to copy >out; echo end'")
        try await program.screen.wait { $0.contains("end") }
        let lines = program.screen.text.split(separator: "\r\u{1B}[K").dropLast()
        #expect(!lines.isEmpty && lines.allSatisfy { $0.utf8.count < 8 }, "\(lines)")
    }

    @Test func aNewPasswordIsPromptedForTwiceWithoutEcho() async throws {
        let admins = try AppDirectory(dataDirectory: folder.path + "/data").admins
        for (second, status) in [("correct hors", 2), ("correct horse battery", 0)] {
            let program = try start("countersign admin user create kim --role owner")
            try await program.screen.wait { $0.contains("Password: ") }
            try await program.type("correct horse battery\n", waitFor: "Password again: ")
            program.type("\(second)\n")
            #expect(try await program.end() == status, "\(program.screen.text)")
            #expect(!program.screen.text.contains("battery"))
            #expect(try admins.users().count == (status == 0 ? 1 : 0))
        }
    }

    @Test func timesOnATerminalAreRelative() async throws {
        _ = try AppDirectory(dataDirectory: folder.path + "/data").createApp(id: "shop")
        let program = try start("countersign write-key list shop")
        try await program.screen.wait { $0.contains("unknown here") }
        #expect(try await program.end() == 0)
        #expect(program.screen.text.contains(#/ \d+ s ago /#), "\(program.screen.text)")
        let piped = try await shell().run("countersign write-key list shop")
        #expect(piped.output.contains(#/ \d{4}-\d\d-\d\dT[\d:.]+Z /#), "\(piped.output)")
    }

    @Test func theLinkForTheFirstSignInHasThePublicURL() async throws {
        let gateway = try start("countersign serve --port 0 --public-url https://collect.example")
        try await gateway.screen.wait { $0.contains("Stop: ") }
        let setup = #/Admin: https:\/\/collect\.example\/admin\/#\/setup\/([\w-]+)\s/#
        let token = try #require(gateway.screen.text.firstMatch(of: setup)?.output.1)
        #expect(
            gateway.screen.text.contains(#/tunnel: http:\/\/127\.0\.0\.1:\d+\/admin\/#\/setup\/[\w-]+\s/#))
        let reset = try await shell().run("countersign admin reset")
        #expect(reset.output.contains(#/^https:\/\/collect\.example\/admin\/#\/setup\/[\w-]+\n$/#))
        #expect(!reset.output.contains(token) && reset.talk.contains("tunnel: http://127.0.0.1:"))
    }

    #if os(Linux)
        @Test func theDashboardIsOpenedOnATerminalWithADisplay() async throws {
            let gateway = try start("countersign serve --port 0")
            try await gateway.screen.wait { $0.contains("Stop: ") }
            let opener = try folder.write("#!/bin/sh\necho \"opened $1.\" >&0\n", to: ".bin/xdg-open")
            try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: opener)
            for display in ["DISPLAY", "WAYLAND_DISPLAY"] {
                let program = try start(
                    "countersign dashboard", environment: noDisplay.merging([display: "1"]) { $1 })
                try await program.screen.wait {
                    $0.contains(#/opened http:\/\/127\S+\/admin\/#\/setup\/[\w-]+\./#)
                }
                #expect(try await program.end() == 0)
            }
            let elsewhere = try start("countersign dashboard", environment: noDisplay)
            try await elsewhere.screen.wait { $0.contains("/admin/#/setup/") }
            #expect(try await elsewhere.end() == 0)
            #expect(!elsewhere.screen.text.contains("opened"))
            try AppDirectory(dataDirectory: folder.path + "/data").admins.createUser(
                name: "kim", role: .owner, password: .ofNobody(cost: .password))
            let piped = try await shell(["DISPLAY": "1"]).run("countersign dashboard </dev/null")
            #expect(piped.output.contains(#/^http:\/\/127\.0\.0\.1:\d+\/admin\/\n$/#), "\(piped)")
        }

        private var noDisplay: [String: String] { ["DISPLAY": "", "WAYLAND_DISPLAY": ""] }
    #endif
}
