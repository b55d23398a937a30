import CHTTPServer
import CountersignCore
import CountersignGateway
import CountersignGatewayTesting
import CountersignTesting
import Foundation
import GatewayHTTP
import GatewayModel
import GatewayTestSupport
import TestSupport
import Testing

@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct TLSTests {
    private let temporary = TemporaryFolder()
    private var folder: URL { temporary.url }
    private var certificate: String { folder.appendingPathComponent("certificate.pem").path }
    private var key: String { folder.appendingPathComponent("key.pem").path }
    private var files: TLSFiles { TLSFiles(certificatePath: certificate, keyPath: key) }

    init() throws {
        try FileManager.default.createDirectory(at: temporary.url, withIntermediateDirectories: true)
    }

    /// Runs a program and returns its exit status and output.
    @discardableResult
    private func run(_ arguments: String...) throws -> (status: Int32, output: String) {
        let result = try runProgram(arguments)
        return (result.status, String(decoding: result.output, as: UTF8.self))
    }

    private func makeCertificate(_ name: String, key: String, certificate: String) throws {
        let made = try run(
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
            "-days", "2", "-subj", "/CN=\(name)", "-addext",
            "subjectAltName=IP:127.0.0.1,DNS:\(name).example", "-keyout", key, "-out", certificate)
        try #require(made.status == 0)
    }

    @Test func aChainThatIsTooLongIsReported() throws {
        try makeCertificate("first", key: key, certificate: certificate)
        let one = try String(contentsOfFile: certificate, encoding: .utf8)
        try String(repeating: one, count: 17).write(toFile: certificate, atomically: true, encoding: .utf8)
        let error = #expect(throws: GatewayError.self) {
            try GatewayFixture(enforcement: .disabled) { $0.tls = files }
        }
        #expect(error?.reason.hasSuffix("the chain has more than 16 certificates") == true)
    }

    @Test func aClientGetsTheCertificateOfTheNameThatItSends() throws {
        var files = files
        for name in ["second", "third"] {
            let other = TLSFiles(
                certificatePath: folder.appendingPathComponent(name + ".pem").path,
                keyPath: folder.appendingPathComponent(name + ".key").path)
            try makeCertificate(name, key: other.keyPath, certificate: other.certificatePath)
            files.others.append(other)
        }
        try makeCertificate("first", key: key, certificate: certificate)
        let fixture = try GatewayFixture(enforcement: .disabled) { $0.tls = files }
        let port = fixture.gateway.port
        func status(_ name: String, _ certificate: String) throws -> Int32 {
            try run(
                "curl", "-sS", "--cacert", certificate, "--resolve", "\(name):\(port):127.0.0.1",
                "https://\(name):\(port)/livez"
            ).status
        }
        let names = ["first", "second", "third"]
        for name in names {
            for (other, path) in zip(names, files.all.map(\.certificatePath)) {
                #expect((try status("\(name).example", path) == 0) == (other == name), "\(name) \(other)")
            }
        }
        let address = "https://127.0.0.1:\(port)/livez"
        #expect(try run("curl", "-sS", "--cacert", certificate, address).status == 0)
        let last = files.others[1]
        try makeCertificate("third", key: last.keyPath, certificate: last.certificatePath)
        fixture.gateway.reload()
        #expect(try status("third.example", last.certificatePath) == 0)
    }

    /// OpenSSL processes any number of key updates within one read.
    @Test(arguments: [(1, 8, true), (1, 100, false), (4, 20, false)])
    func manyKeyUpdatesEndTheConnection(rounds: Int, updates: Int, isAnswered: Bool) throws {
        try makeCertificate("first", key: key, certificate: certificate)
        let fixture = try GatewayFixture(enforcement: .disabled) { $0.tls = files }
        countersign_ignore_broken_pipes()
        let context = SSL_CTX_new(TLS_client_method())
        defer { SSL_CTX_free(context) }
        let tls = SSL_new(context)
        defer { SSL_free(tls) }
        let connection = BIO_new_connect("127.0.0.1:\(fixture.gateway.port)")
        SSL_set_bio(tls, connection, connection)
        try #require(SSL_connect(tls) == 1)
        let request = Array("GET /livez HTTP/1.1\r\nHost: a\r\n\r\n".utf8)
        for round in 0..<rounds {
            for _ in 0..<updates {
                _ = SSL_key_update(tls, SSL_KEY_UPDATE_NOT_REQUESTED)
                _ = SSL_do_handshake(tls)
            }
            let part = Array(round + 1 < rounds ? request[round...round] : request[round...])
            _ = SSL_write(tls, part, Int32(part.count))
        }
        var answer = [UInt8](repeating: 0, count: 64)
        #expect((SSL_read(tls, &answer, 64) > 0) == isAnswered)
    }

    @Test func newConnectionsUseANewCertificateUnlessItIsInvalid() throws {
        try makeCertificate("first", key: key, certificate: certificate)
        let fixture = try GatewayFixture(enforcement: .disabled) { $0.tls = files }
        let url = "https://127.0.0.1:\(fixture.gateway.port)"
        let old = folder.appendingPathComponent("old.pem").path
        try FileManager.default.copyItem(atPath: certificate, toPath: old)
        #expect(try run("curl", "-sS", "--cacert", old, "\(url)/livez").output == "ok\n")
        #expect(try run("curl", "-sS", "--cacert", old, "--tls-max", "1.1", "\(url)/livez").status != 0)
        let body = batch(trackEvent("m-1"))
        let posted = try run(
            "curl", "-sS", "--cacert", old, "-u", "\(fixture.writeKey):", "-d", body, "\(url)/v1/batch")
        #expect(posted.output.contains(#""accepted":1"#))

        // A certificate without its key: the previous one stays in use.
        let other = folder.appendingPathComponent("other.pem").path
        try makeCertificate("second", key: other, certificate: certificate)
        fixture.gateway.reload()
        #expect(try run("curl", "-sS", "--cacert", old, "\(url)/livez").output == "ok\n")

        #expect(rename(other, key) == 0)
        fixture.gateway.reload()
        #expect(try run("curl", "-sS", "--cacert", old, "\(url)/livez").status != 0)
        #expect(try run("curl", "-sS", "--cacert", certificate, "\(url)/livez").output == "ok\n")
    }

    /// A file can become readable again without a change, after the process had no free file descriptor.
    @Test func aFailedReloadIsRepeatedAndReportedOnce() throws {
        try makeCertificate("first", key: key, certificate: certificate)
        let isReadable = Lock(true)
        let reports = Lock<[String?]>([])
        let certificates = try TLSCertificates(
            files: files, report: { problem in reports.withLock { $0.append(problem) } },
            read: { path in
                let content = FileManager.default.contents(atPath: path).map { [UInt8]($0) }
                return isReadable.withLock { $0 } ? content : nil
            })
        try makeCertificate("second", key: key, certificate: certificate)
        isReadable.withLock { $0 = false }
        for _ in 0..<3 { certificates.refresh() }
        #expect(reports.withLock { $0 } == ["cannot read \(certificate)"])
        isReadable.withLock { $0 = true }
        for _ in 0..<3 { certificates.refresh() }
        #expect(reports.withLock { $0 } == ["cannot read \(certificate)", nil])
    }

    /// Permissions change neither a file's modification time nor its size.
    @Test func aChangeOfPermissionsReloadsTheCertificate() throws {
        try makeCertificate("first", key: key, certificate: certificate)
        let reports = Lock<[String?]>([])
        let certificates = try TLSCertificates(
            files: files, report: { problem in reports.withLock { $0.append(problem) } })
        // A new process takes longer than the resolution of a file's times.
        try run("openssl", "version")
        #expect(chmod(key, 0o640) == 0)
        certificates.refresh()
        #expect(reports.withLock { $0 } == [nil])
    }

    /// For outbound requests, an operator's certificate authority replaces those of the system.
    @Test func outgoingCertificatesAreVerifiedByTheGivenAuthority() throws {
        try makeCertificate("collector", key: key, certificate: certificate)
        let fixture = try GatewayFixture(enforcement: .disabled) { $0.tls = files }
        func status(_ authority: String?) throws(OutboundRequest.Failure) -> Int {
            try OutboundRequest(
                url: "https://127.0.0.1:\(fixture.gateway.port)/livez", certificateAuthorityFile: authority,
                allowsPrivateAddresses: true, timeoutMilliseconds: 10_000, maximumBytes: 100
            ).perform().status
        }
        #expect(try status(certificate) == 200)
        #expect(throws: OutboundRequest.Failure.self) { try status(nil) }
        let other = folder.appendingPathComponent("other.pem").path
        try makeCertificate("other", key: key, certificate: other)
        #expect { try status(other) } throws: { ($0 as? OutboundRequest.Failure)?.code == .tls }
    }

    @Test func anAuthorityThatCannotBeReadIsReportedAtTheStart() throws {
        var rules = TelemetryRules(endpoint: "https://127.0.0.1:1")
        rules.certificateAuthorityFile = certificate
        let error = #expect(throws: GatewayError.self) {
            _ = try GatewayFixture(enforcement: .disabled) { $0.telemetry = rules }
        }
        #expect(error?.code == .invalid && error?.reason.contains("otlp-ca-file") == true)
    }

    @Test(arguments: ["-tls1_2", "-tls1_3"]) func aSessionIsResumedUntilTheCertificateChanges(version: String)
        throws
    {
        try makeCertificate("first", key: key, certificate: certificate)
        let fixture = try GatewayFixture(enforcement: .disabled) { $0.tls = files }
        let session = folder.appendingPathComponent("session.pem").path
        func isResumed(_ option: String) throws -> Bool {
            let command =
                "printf 'GET /livez HTTP/1.1\\r\\nHost: a\\r\\nConnection: close\\r\\n\\r\\n' | openssl s_client "
                + "\(version) -ign_eof -connect 127.0.0.1:\(fixture.gateway.port) \(option) \(session) 2>&1"
            let output = try run("sh", "-c", command).output
            #expect(output.contains("HTTP/1.1 200 OK"))
            return output.contains("Reused, TLS")
        }
        #expect(try !isResumed("-sess_out"))
        #expect(try isResumed("-sess_in"))
        try makeCertificate("second", key: key, certificate: certificate)
        fixture.gateway.reload()
        #expect(try !isResumed("-sess_in"))
    }

    @Test func abandonedHandshakesDelayNoRequest() throws {
        try makeCertificate("first", key: key, certificate: certificate)
        let fixture = try GatewayFixture(enforcement: .disabled) {
            $0.tls = files
            $0.loopCount = 1
        }
        // A TLS record shorter than its length field, and plain HTTP.
        let abandoned = try (0..<200).map { number in
            let connection = try RawConnection(port: fixture.gateway.port)
            connection.send(number % 2 == 0 ? [0x16, 3, 1, 1, 0, 1] : Array("GET / HTTP/1.1\r\n\r\n".utf8))
            return connection
        }
        let url = "https://127.0.0.1:\(fixture.gateway.port)/livez"
        #expect(try run("curl", "-sS", "-m", "20", "--cacert", certificate, url).output == "ok\n")
        #expect(abandoned[1].isClosedByServer())
    }

    @Test func aGatewayDoesNotStartWithoutAValidCertificate() throws {
        #expect(throws: GatewayError.self) {
            try GatewayFixture(enforcement: .disabled) { $0.tls = files }
        }
    }

    @Test func anEncryptedKeyIsOpenedWithItsPassword() throws {
        let plain = folder.appendingPathComponent("plain.pem").path
        try makeCertificate("secret", key: plain, certificate: certificate)
        let packed = try run(
            "openssl", "pkcs8", "-topk8", "-in", plain, "-out", key, "-passout", "pass:s3cret")
        try #require(packed.status == 0)
        let files = TLSFiles(certificatePath: certificate, keyPath: key, keyPassword: "s3cret")
        let fixture = try GatewayFixture(enforcement: .disabled) { $0.tls = files }
        let url = "https://127.0.0.1:\(fixture.gateway.port)/livez"
        #expect(try run("curl", "-sS", "--cacert", certificate, url).output == "ok\n")
    }
}
