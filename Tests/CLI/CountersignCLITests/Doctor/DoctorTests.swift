import CountersignGateway
import CountersignGatewayTesting
import Foundation
import GatewayModel
import GatewayStorage
import Testing

@testable import CountersignCLI

@Suite(.timeLimit(.minutes(5)))
struct DoctorTests {
    private let folder = TemporaryFolder()
    private let data: String

    init() throws {
        data = folder.path + "/data"
    }

    /// Creates a data directory with an app.
    private func makeData() throws {
        try FolderTemplate.copy(to: data)
        _ = try AppDirectory(dataDirectory: data).createApp(id: "shop")
    }

    private func run(_ more: [String: String] = [:], _ flags: String...) async -> (ExitCode, String) {
        let own = ["COUNTERSIGN_DATA": data, "COUNTERSIGN_PORT": "0", "HOME": folder.path]
        let io = RecordedIO(environment: own.merging(more) { $1 })
        let code = await io.run(arguments: ["doctor"] + flags)
        return (code, io.output + io.talk)
    }

    /// Runs all checks. `foreign` simulates files of another account, because only root can change owners.
    /// `obstacle` returns the `errno` of an access check, or 0.
    private func findings(
        foreign: @escaping @Sendable (_ path: String) -> Bool = { _ in true },
        _ obstacle: @escaping @Sendable (_ path: String, _ mode: Int32) -> Int32
    ) async -> [Finding] {
        var configuration = GatewayConfiguration(dataDirectory: data)
        configuration.port = 0
        var doctor = Doctor(configuration: configuration, url: nil)
        doctor.obstacle = obstacle
        doctor.ownerID = { foreign($0) ? 65_534 : getuid() }
        return await doctor.findings()
    }

    @Test func aMissingFolderIsAFinding() async throws {
        let (code, text) = await run()
        #expect(code == .notFound)
        #expect(text.contains("FAIL  data directory: there is no folder \(data)"))
        #expect(text.contains("--data"))
        #expect(!text.contains("there is no app"))
        #expect(!FileManager.default.fileExists(atPath: data))
    }

    @Test func aHealthyDataDirectoryHasNoFailedFinding() async throws {
        try makeData()
        let (code, text) = await run()
        #expect(code == .done, "\(text)")
        #expect(!text.contains("FAIL"))
        #expect(text.contains("ok    files: "))
        #expect(text.contains("no gateway runs on this data directory"))
    }

    @Test(arguments: [W_OK, R_OK, X_OK])
    func anUnreadableFolderIsReportedAsOneOfAnotherAccount(missing: Int32) async throws {
        try makeData()
        let data = data
        let findings = await findings { path, mode in
            path == data ? mode & missing != 0 ? EACCES : 0 : missing == X_OK ? EACCES : 0
        }
        let first = try #require(findings.first)
        #expect(first.outcome == .failed)
        #expect(first.detail.contains("this account"))
        #expect(try #require(first.remedy).hasPrefix("sudo -u "))
        let all = findings.map { "\($0.detail) \($0.remedy ?? "")" }.joined(separator: "\n")
        for word in ["backup", "there is no app", "none runs"] { #expect(!all.contains(word), "\(all)") }
    }

    @Test func unreadableFilesAreReportedAsThoseOfAnotherAccount() async throws {
        try makeData()
        _ = FileManager.default.createFile(atPath: data + "/gateway.lock", contents: nil)
        let names = ["control.sqlite", "gateway.lock"]
        let findings = await findings { path, _ in names.contains { path.hasSuffix($0) } ? EACCES : 0 }
        for name in names {
            let finding = try #require(
                findings.first { $0.detail.contains("this account, ") && $0.detail.contains(name) })
            #expect(finding.outcome == .failed)
            #expect(try #require(finding.remedy).hasPrefix("sudo -u "))
        }
        let all = findings.map { "\($0.detail) \($0.remedy ?? "")" }.joined(separator: "\n")
        for word in ["backup", "there is no app", "none runs"] { #expect(!all.contains(word), "\(all)") }
    }

    @Test func aDatabaseThatOtherAccountsCanReadIsReported() async throws {
        try makeData()
        let file = data + "/control.sqlite"
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file)
        let (code, text) = await run()
        #expect(code == .done)
        #expect(text.contains("note  files: others can read or write \(file)"))
        #expect(text.contains("-> chmod 600 '\(file)'"))
        #expect("it's".quotedForShell == #"'it'\''s'"#)
    }

    @Test func aFileOfAnotherAccountIsReported() async throws {
        try makeData()
        let findings = await findings(foreign: { $0.hasSuffix("control.sqlite") }) { _, _ in 0 }
        let files = try #require(findings.first { $0.name == "files" })
        #expect(files.outcome == .warning)
        #expect(files.detail.hasPrefix("\(data)/control.sqlite belongs to"))
        #expect(try #require(files.remedy).hasPrefix("sudo chown -R "))
    }

    @Test func aPortInUseByAnotherProgramIsAFailure() async throws {
        try makeData()
        let other = try GatewayFixture()
        let (code, text) = await run(["COUNTERSIGN_PORT": String(other.gateway.port)])
        #expect(code == .failed)
        #expect(text.contains("FAIL  port: another process listens on 127.0.0.1:\(other.gateway.port)"))
        let port = other.gateway.port
        // The gateway's IPv6 listener does not accept IPv4 connections.
        let (_, both) = await run(["COUNTERSIGN_HOST": "::", "COUNTERSIGN_PORT": String(port)])
        #expect(both.contains("ok    port: [::]:\(port) is free"), "\(both)")
        other.gateway.stop()
        #expect(
            await run(["COUNTERSIGN_PORT": String(port)]).1.contains("ok    port: 127.0.0.1:\(port) is free"))
    }

    @Test func settingsThatServeWouldRejectAreAFinding() async throws {
        try makeData()
        let (code, text) = await run(["COUNTERSIGN_TLS_KEY": "key.pem"])
        #expect(code == .failed)
        #expect(text.contains("FAIL  settings: HTTPS needs both"))
    }

    @Test(arguments: [(0, Finding.Outcome.ok), (380, .warning), (401, .failed), (-2, .failed)])
    func theExpiryOfTheCertificateIsReported(days: Double, outcome: Finding.Outcome) async throws {
        try makeData()
        let (certificate, key) = try await folder.makeCertificate("own")
        var configuration = GatewayConfiguration(dataDirectory: data)
        configuration.port = 0
        configuration.tls = TLSFiles(certificatePath: certificate, keyPath: key)
        var doctor = Doctor(configuration: configuration, url: nil)
        let now = Date(timeIntervalSinceNow: days * 86_400)
        doctor.now = { now }
        let finding = try #require(await doctor.findings().first { $0.name == "certificate" })
        #expect(finding.outcome == outcome)
    }

    @Test func theGatewaysClockIsComparedWithTheDoctors() async throws {
        let fixture = try GatewayFixture()
        let url = try #require(URL(string: "http://127.0.0.1:\(fixture.gateway.port)"))
        var doctor = Doctor(configuration: GatewayConfiguration(dataDirectory: data), url: url)
        func outcome() async -> Finding.Outcome? {
            await doctor.findings().first { $0.name == "clock" }?.outcome
        }
        #expect(await outcome() == .ok)
        let now = Date(timeIntervalSinceNow: 3_600)
        doctor.now = { now }
        #expect(await outcome() == .failed)
    }

    @Test(.enabled(if: TestEngine.standard == .sqlite))
    func doctorTrustsTheGivenCAFileForARunningGateway() async throws {
        let (certificate, key) = try await folder.makeCertificate("own")
        let fixture = try GatewayFixture { $0.tls = TLSFiles(certificatePath: certificate, keyPath: key) }
        #expect(await run(fixture.place.environment).0 == .unavailable)
        #expect(await run(fixture.place.environment, "--ca-file", certificate).0 == .done)
    }

    @Test func aKeyOfAnotherCertificateIsAFinding() async throws {
        try makeData()
        let (certificate, key) = try await folder.makeCertificate("own")
        let file = try folder.write(
            #"{"tls-certificate": "\#(certificate)", "tls-key": "\#(key)"}"#, to: "gateway.json")
        let well = await run([:], "--config", file)
        #expect(well.0 == .done)
        #expect(well.1.contains("ok    certificate: \(certificate) is valid until "))
        let (_, other) = try await folder.makeCertificate("other")
        let (code, text) = await run([
            "COUNTERSIGN_TLS_CERTIFICATE": certificate, "COUNTERSIGN_TLS_KEY": other,
        ])
        #expect(code == .failed)
        #expect(text.contains("FAIL  certificate: \(other) is not the key of \(certificate)"))
    }

    @Test func certificateFilesThatCannotBeReadAreReportedByName() async throws {
        try makeData()
        let (certificate, key) = try await folder.makeCertificate("own")
        let nonsense = try folder.write("nonsense", to: "nonsense.pem")
        for (first, second, text) in [
            (folder.path + "/none.pem", key, "cannot read \(folder.path)/none.pem"),
            (certificate, folder.path + "/none.pem", "cannot read \(folder.path)/none.pem"),
            (nonsense, key, "\(nonsense) holds no certificate"),
            (certificate, nonsense, "\(nonsense) holds no private key"),
        ] {
            let found = await run(["COUNTERSIGN_TLS_CERTIFICATE": first, "COUNTERSIGN_TLS_KEY": second])
            #expect(found.0 == .failed)
            #expect(found.1.contains("FAIL  certificate: \(text)"), "\(found.1)")
        }
    }
}
