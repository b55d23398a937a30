import CountersignCrypto
import CountersignGatewayTesting
import CountersignJOSE
import Foundation
import Testing

@testable import CountersignCLI

/// `key generate` and `token create`, `inspect` and `verify`, on key files.
@Suite(.timeLimit(.minutes(5)))
struct TokenCommandTests {
    private let folder = TemporaryFolder()
    private let publicKey: String
    private let privateKey: String

    init() throws {
        let key = try SharedKeys.app()
        privateKey = try folder.write(key.privatePEM, to: "private.pem")
        publicKey = try folder.write(key.publicKey.pem, to: "public.pem")
    }

    private func run(_ arguments: String..., input: String = "") async -> (ExitCode, RecordedIO) {
        let recorded = RecordedIO(input: input)
        return (await recorded.run(arguments: arguments), recorded)
    }

    private func token(user: String = "user-1") async -> String {
        await run("token", "create", "--key", privateKey, "--user", user, "--now", "1800000000").1.output
    }

    @Test func generatedKeysAreFilesOfMode600AndNotPrinted() async throws {
        let (made, pair) = await run("key", "generate", "--out", folder.path + "/pair", "--json")
        #expect(made == .done && pair.output.contains(#""algorithm":"RS256","bits":2048"#))
        for name in ["private.pem", "public.pem"] {
            let attributes = try FileManager.default.attributesOfItem(atPath: folder.path + "/pair/" + name)
            #expect(attributes[.posixPermissions] as? Int == 0o600)
        }
        let (code, recorded) = await run(
            "key", "generate", "--out", folder.path + "/ec", "--alg", "ES256", "--json")
        #expect(code == .done)
        #expect(recorded.output.contains(#""algorithm":"ES256""#))
        #expect(!recorded.output.contains("PRIVATE") && !recorded.talk.contains("BEGIN"))
        _ = try SigningKey(pem: String(contentsOfFile: folder.path + "/ec/private.pem", encoding: .utf8))
    }

    @Test func aPipeIsReadAsAFile() async throws {
        let token = try FilledPipe(await token())
        let key = try FilledPipe(String(contentsOfFile: publicKey, encoding: .utf8))
        let (code, recorded) = await run(
            "token", "verify", token.path, "--key", key.path, "--now", "1800000000")
        #expect(code == .done, "\(recorded.talk)")
    }

    @Test func keyGenerateDoesNotOverwriteExistingKeys() async throws {
        let before = try String(contentsOfFile: privateKey, encoding: .utf8)
        #expect(await run("key", "generate", "--out", folder.path).0 == .conflict)
        #expect(try String(contentsOfFile: privateKey, encoding: .utf8) == before)
    }

    @Test func keyGenerateDoesNotFollowASymbolicLink() async throws {
        let target = folder.path + "/elsewhere"
        try FileManager.default.createDirectory(
            atPath: folder.path + "/linked", withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(
            atPath: folder.path + "/linked/private.pem", withDestinationPath: target)
        #expect(
            await run("key", "generate", "--out", folder.path + "/linked", "--alg", "ES256").0 == .conflict)
        #expect(!FileManager.default.fileExists(atPath: target))
    }

    /// A token must not pass control characters to the terminal.
    @Test func aHostileTokenIsInspectedWithoutItsControlCharacters() async throws {
        let claims = #"{"\u001b[2JVERIFIED\nsub":"\u009bx","sub":"u\u202e","exp":-9e10,"iat":1e300,"nbf":1}"#
        let text = [#"{"alg":"none\u001b"}"#, claims, "x"].map { Base64URL.encode(Array($0.utf8)) }
            .joined(separator: ".")
        let recorded = RecordedIO(input: text)
        #expect(await recorded.run("token", "inspect", "-") == .done)
        let lines = recorded.output.split(separator: "\n")
        #expect(lines.count == 7 && lines[0].hasPrefix("UNVERIFIED"), "\(lines)")
        #expect(lines.filter { $0.contains("(") }.count == 1, "\(lines)")
        #expect(
            recorded.output.unicodeScalars.allSatisfy {
                $0 == "\n" || $0.properties.generalCategory != .control
            })
        #expect(await RecordedIO().run("token", "inspect", "nofile") == .notFound)
    }

    @Test(arguments: ["inspect", "verify"])
    func aTokenIsNotAnArgumentAndIsNotRepeated(command: String) async throws {
        let token = await token()
        let recorded = RecordedIO()
        let key = command == "verify" ? ["--key", publicKey] : []
        #expect(await recorded.run(arguments: ["token", command, token] + key) == .usage)
        #expect(recorded.talk.contains("standard input"))
        #expect((recorded.talk + recorded.output).contains(token) == false)
    }

    @Test func tokenVerifyExitsWithTheResult() async throws {
        let file = try folder.write(await token(), to: "token")
        func verify(_ more: String...) async -> ExitCode {
            await RecordedIO().run(arguments: ["token", "verify", file, "--key", publicKey] + more)
        }
        #expect(await verify("--user", "user-1", "--now", "1800000000") == .done)
        #expect(await verify("--now", "1800000000.5") == .done)
        #expect(await verify("--user", "user-2", "--now", "1800000000") == .verificationFailed)
        #expect(await verify("--user", "user-1", "--now", "1800003630") == .verificationFailed)
        #expect(
            await verify("--user", "user-1", "--now", "1800000000", "--alg", "ES256") == .verificationFailed)
        #expect(await verify("--user", "user-1", "--now", "soon") == .usage)
        #expect(await verify("--user", "", "--now", "1800000000") == .usage)
        #expect(await verify("--key", publicKey, "--key", publicKey, "--now", "1800000000") == .done)
        #expect(await verify("--key", publicKey, "--key", publicKey, "--key", publicKey) == .usage)
    }

    @Test func tokenVerifyShowsEachCheck() async throws {
        let input = await token()
        let (code, recorded) = await run(
            "token", "verify", "--key", publicKey, "--user", "user-2", "--now", "1800009999", input: input)
        #expect(code == .verificationFailed)
        #expect(recorded.output.contains("ok    a public key verifies the signature\n"))
        #expect(recorded.output.contains("FAIL  the token has not expired: exp passed"))
        #expect(recorded.output.contains("FAIL  the token belongs to the user"))
        #expect(recorded.output.contains("rejected: 22 EXPIRED\n"))
        // Only a gateway knows revocations.
        #expect(recorded.output.contains("-     the token was not revoked\n"))
        let garbage = await run("token", "verify", "--key", publicKey, input: "garbage").1.output
        #expect(garbage.contains("FAIL  the token is a compact") && garbage.contains("-     exp is present"))
    }

    @Test func anInvalidKeyIsReported() async throws {
        let (code, recorded) = await run("token", "verify", "--key", privateKey, input: await token())
        #expect(code == .verificationFailed)
        #expect(recorded.talk.contains("private key"))
        #expect(recorded.output.contains("rejected: 25 PUBLIC_KEY_ERROR"))
    }

    @Test func verifyingManyTokensContinuesAfterABadLine() async throws {
        let pem = try PublicKey(pem: String(contentsOfFile: publicKey, encoding: .utf8)).jwk
        let good = await token().trimmingCharacters(in: .newlines)
        func line(_ name: String, _ more: String) -> String {
            #"{"name":"\#(name)","keys":[\#(pem)],"token":"\#(good)","now":1800000000\#(more)}"#
        }
        let lines = [
            line("a", #","expected_user":"user-1""#), "{", "[]", line("b", #","expected_user":"user-2""#),
            line("c", #","expected_user":"user-1","config":{"algorithms":["PS256"]}"#), "", "\u{1}",
            line("d", #","expected_user":"user-1","user_ids":["user-1","x"]"#), line("e", #","now":1"#),
            line("f", #","expected_user":7"#),
            line("g", #","expected_user":"user-1","config":{"audience":"x","require_audience":true}"#),
            #"{"name":"h","keys":["nonsense"],"token":null,"now":1,"expected_user":"u"}"#,
            line("i", ""), line("j", #","expected_user":"user-1","config":null"#),
        ]
        let (code, recorded) = await run(
            "token", "verify", "--batch", "-", input: lines.joined(separator: "\n"))
        #expect(code == .done)
        let answers = try recorded.output.split(separator: "\n").map { line in
            try #require(JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        }
        let summary = answers.map {
            "\($0["name"] as? String ?? "-") \($0["verdict"] as? String ?? "") \($0["code"] as? Int ?? 0)"
        }
        #expect(
            summary == [
                "a accept 0", "- reject 0", "- reject 0", "b reject 21", "c reject 24", "- reject 0",
                "d reject 28",
                "- reject 0", "f reject 0", "g reject 33", "h reject 26", "i accept 0", "j accept 0",
            ])
        #expect(answers.allSatisfy { $0["faults"] is [Any] && $0["reason"] != nil })
    }

    private static let secret = "0123456789abcdef0123456789abcdef"

    private func customerToken(_ more: String...) async throws -> String {
        let secret = folder.path + "/secret"
        try Self.secret.write(toFile: secret, atomically: true, encoding: .utf8)
        let recorded = RecordedIO()
        let code = await recorded.run(
            arguments: [
                "token", "create", "--customer-id", "registered=ada", "--customer-id", "email=a=b@x.example",
                "--secret-file", secret, "--kid", "backend", "--now", "1800000000",
            ] + more)
        #expect(code == .done, "\(recorded.talk)")
        return recorded.output
    }

    @Test func aCustomerTokenHasAllIDsOfItsCustomer() async throws {
        let inspected = RecordedIO(input: try await customerToken())
        #expect(await inspected.run("token", "inspect", "-", "--json") == .done)
        #expect(
            inspected.output.contains(#""alg":"HS256""#) && inspected.output.contains(#""kid":"backend""#))
        #expect(inspected.output.contains(#""sub":{"email":"a=b@x.example","registered":"ada"}"#))
        #expect(inspected.output.contains(#""exp":1800003600"#))
    }

    @Test(arguments: [
        (["registered=ada"], "backend", "1800000000", ExitCode.done),
        (["registered=ada", "email=a=b@x.example"], "backend", "1800000000", .done),
        // The device's own id need not be in the token.
        (["registered=ada", "cookie=c-1"], "backend", "1800000000", .done),
        (["registered=bob"], "backend", "1800000000", .verificationFailed),
        (["registered=ada", "phone=1"], "backend", "1800000000", .verificationFailed),
        (["registered=ada"], "another", "1800000000", .verificationFailed),
        (["registered=ada"], "backend", "1800009999", .verificationFailed),
    ])
    func aCustomerTokenIsChecked(ids: [String], keyID: String, now: String, expected: ExitCode) async throws {
        let recorded = RecordedIO(input: try await customerToken())
        let code = await recorded.run(
            arguments: [
                "token", "verify", "--secret-file", folder.path + "/secret", "--kid", keyID, "--now", now,
            ] + ids.flatMap { ["--customer-id", $0] })
        #expect(code == expected, "\(recorded.output)\(recorded.talk)")
        #expect(!(recorded.output + recorded.talk).contains(Self.secret))
    }

    @Test func aCustomerTokenMayAlsoBeSignedByAKeyOfTheApp() async throws {
        let made = await run(
            "token", "create", "--customer-id", "registered=ada", "--key", privateKey, "--now", "1800000000")
        #expect(made.0 == .done)
        for (id, expected) in [("registered=ada", ExitCode.done), ("registered=bob", .verificationFailed)] {
            let (code, _) = await run(
                "token", "verify", "--key", publicKey, "--customer-id", id, "--now", "1800000000",
                input: made.1.output)
            #expect(code == expected)
        }
    }

    @Test(arguments: [
        ["--customer-id", "registered"], ["--customer-id", "=ada"], ["--customer-id", "registered="],
        ["--customer-id", "registered=ada", "--customer-id", "registered=bob"],
        ["--customer-id", "registered=ada", "--user", "ada"],
    ])
    func invalidCustomerIDsAreUsageErrors(flags: [String]) async throws {
        let recorded = RecordedIO()
        #expect(await recorded.run(arguments: ["token", "create", "--key", privateKey] + flags) == .usage)
    }

    @Test func aSecretNeedsItsIDAndThirtyTwoBytes() async throws {
        let short = try folder.write("short", to: "short")
        let flags = ["token", "create", "--customer-id", "registered=ada", "--secret-file", short]
        #expect(await RecordedIO().run(arguments: flags) == .usage)
        let recorded = RecordedIO()
        #expect(await recorded.run(arguments: flags + ["--kid", "backend"]) == .failed)
        #expect(recorded.talk.contains("32 bytes"))
    }
}
