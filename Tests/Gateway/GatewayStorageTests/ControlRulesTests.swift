import CountersignCore
import CountersignCrypto
import CountersignGatewayTesting
import Foundation
import GatewayModel
import GatewayTestSupport
import Testing

@testable import GatewayStorage

/// Validation in the stores of operators' settings, which applies to every caller.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct ControlRulesTests {
    private let place: TestStorage
    private let apps: AppDirectory

    init() throws {
        place = try TestStorage()
        apps = try place.openControl()
        _ = try apps.createApp(id: "shop")
    }

    private func code(_ body: () throws -> Void) -> GatewayError.Code? {
        #expect(throws: GatewayError.self) { try body() }?.code
    }

    @Test(arguments: ["", "Shop", "shöp", "a b", "a/b", String(repeating: "a", count: 65)])
    func invalidAppIDsAreRejected(id: String) {
        #expect(code { _ = try apps.createApp(id: id) } == .invalid)
    }

    @Test(arguments: ["", "a\nb", "a\u{0}", "\u{202E}pohs", String(repeating: "a", count: 201)])
    func appNamesAreLimitedPrintableText(name: String) throws {
        #expect(code { _ = try apps.createApp(id: "blog", name: name) } == .invalid)
        #expect(try apps.apps().map(\.id) == ["shop"])
    }

    @Test(arguments: [#"{"keys":[]}"#, #"{"keys":[{"kty":"new"}]}"#, "{}"])
    func aKeySetWithoutAUsableKeyIsInvalid(json: String) {
        #expect(code { _ = try apps.importKeys(fromJWKSet: json, to: "shop") } == .invalid)
    }

    @Test func aClientNeedsAGrant() {
        #expect(code { _ = try apps.clients.create(of: "shop", name: "a", grants: []) } == .invalid)
    }

    @Test func anAPITokenNeedsANameAndKnownScopes() throws {
        let tokens = apps.apiTokens
        for name in ["", String(repeating: "a", count: 101)] {
            #expect(code { _ = try tokens.create(name: name, scopes: ["read"]) } == .invalid)
        }
        for scopes in [[], ["root"], ["read", "root"], ["Read"]] {
            #expect(code { _ = try tokens.create(name: "a", scopes: scopes) } == .invalid)
        }
        #expect(try tokens.all().isEmpty)
    }

    @Test func aSetupLinkIsUsedOnce() throws {
        let token = try apps.admins.makeSetupToken(at: 0)
        let password = PasswordHash(text: "scrypt$1$1$1$AA$AA")
        func setUp(_ token: String, name: String, at time: Int64) throws {
            try apps.admins.setUp(token: token, name: name, password: password, at: time)
        }
        #expect(code { try setUp("another", name: "eve", at: 1) } == .notFound)
        #expect(code { try setUp(token, name: "eve", at: 30 * 60_000) } == .notFound)
        try setUp(token, name: "ada", at: 1)
        #expect(code { try setUp(token, name: "eve", at: 2) } == .notFound)
        #expect(
            code { try apps.admins.createUser(name: "ada", role: .viewer, password: password) } == .conflict)
        #expect(try apps.admins.users().map(\.name) == ["ada"])
        #expect(try apps.admins.users().map(\.role) == [.owner])
    }

    @Test(
        arguments: [
            (
                #"{"id":"m","type":"html","content":{},"recipient":{"a":"1","b":"2"}}"#,
                GatewayError.Code.invalid
            ),
            (#"{"id":"m","type":"html","content":{},"recipient":{"a":1}}"#, .invalid),
            (#"{"id":"m","type":"html","content":{},"recipient":{}}"#, .invalid),
            (#"{"id":"m","type":"html","content":{},"recipient":"a"}"#, .invalid),
            (#"{"id":"m","type":"html","content":{},"recipient":{"a":"1"}}"#, nil),
            (#"{"id":"m","type":"html","content":{},"recipient":null}"#, nil),
        ] as [(String, GatewayError.Code?)])
    func anInboxMessageHasOneRecipientOrNone(json: String, expected: GatewayError.Code?) throws {
        if let expected {
            #expect(code { _ = try apps.projects.putInboxMessage(json: json, in: "shop") } == expected)
        } else {
            #expect(try apps.projects.putInboxMessage(json: json, in: "shop") == "m")
        }
    }

    @Test func theMessagesOfAnInboxAreLimited() throws {
        let most = ProjectStore.maximumInboxMessages
        func put(_ id: String) throws {
            try apps.projects.putInboxMessage(id: id, type: "html", content: "{}", in: "shop")
        }
        try put("m-1")
        let connection = try place.connection(to: "control")
        try connection.run(
            """
            WITH RECURSIVE number (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM number WHERE n < \(most))
            INSERT INTO inbox_message (app_id, id, type, content, created_ms)
            SELECT 'shop', 'm-' || n, 'html', '{}', 1 FROM number
            """)
        #expect(code { try put("one more") } == .conflict)
        // An existing message can still be replaced.
        try put("m-1")
    }

    @Test func webhooksAreLimitedForEachAppAndInTotal() throws {
        func create(_ appID: String) throws {
            _ = try apps.webhooks.create(
                of: appID, ["url": "https://hooks.example/"], secret: nil, after: 0, at: 0)
        }
        for _ in 0..<WebhookStore.mostOfApp { try create("shop") }
        #expect(code { try create("shop") } == .conflict)
        let others = WebhookStore.most / WebhookStore.mostOfApp
        for number in 1..<others {
            _ = try apps.createApp(id: "app-\(number)")
            for _ in 0..<WebhookStore.mostOfApp { try create("app-\(number)") }
        }
        _ = try apps.createApp(id: "last")
        #expect(code { try create("last") } == .conflict)
    }

    /// Repeating the call after a lost response does not remove a secret that still signs.
    @Test func aRepeatedSecretRotationKeepsThePreviousSecret() throws {
        let (first, second) = (PushWebhook.newSecret(), PushWebhook.newSecret())
        let made = try apps.webhooks.create(
            of: "shop", ["url": "https://hooks.example/"], secret: first, after: 0, at: 0
        ).endpoint
        for time in [Int64(1), 2] {
            _ = try apps.webhooks.rotateSecret(
                of: made.id, of: "shop", to: second, keepingOldFor: 1, at: time)
        }
        let endpoint = try apps.webhooks.endpoint(made.id, of: "shop")
        #expect(endpoint.oldSecret?.secret == made.secret)
        #expect(endpoint.oldSecret?.untilMilliseconds == 3_600_001)
    }

    @Test func streamsOfAnAppAreLimited() throws {
        func create(_ number: Int) throws {
            _ = try apps.streams.create(
                "s\(number)", of: "shop", ["servers": "nats://a:4222", "stream": .string("S\(number)")],
                after: 0, at: 0)
        }
        for number in 0..<StreamStore.most { try create(number) }
        #expect(code { try create(StreamStore.most) } == .conflict)
    }
}

struct StorageRulesTests {
    @Test func filterValuesHaveALengthLimit() throws {
        func code(_ filter: EventFilter) -> ConsumerFailure.Code? {
            #expect(throws: ConsumerFailure.self) { try EventConsumerRules.check(filter) }?.code
        }
        func text(_ count: Int) -> String { String(repeating: "a", count: count) }
        try EventConsumerRules.check(EventFilter())
        try EventConsumerRules.check(EventFilter(type: text(64), name: text(512), userID: text(512)))
        for bad in [
            EventFilter(type: ""), EventFilter(name: ""), EventFilter(userID: ""),
            EventFilter(type: text(65)),
            EventFilter(name: text(513)), EventFilter(userID: text(513)), EventFilter(type: "a\u{7F}"),
            EventFilter(name: "a\n"),
        ] { #expect(code(bad) == .invalid) }
    }

    /// The checksum of a position is not secret, so the sequence number is validated too.
    @Test(arguments: [Int64.min, -1, 0, 7, 8, Int64.max])
    func aPositionBeyondTheLogIsRejected(sequence: Int64) throws {
        let positions = EventPositions(logID: [UInt8](repeating: 1, count: 16), head: 7)
        let text = positions.text(after: sequence, in: "shop")
        let found = Result { () throws(EventPositions.Fault) in try positions.sequence(of: text, in: "shop") }
        switch sequence {
        case ..<0: #expect(throws: EventPositions.Fault.malformed) { try found.get() }
        case 0...7: #expect(try found.get() == sequence)
        default: #expect(throws: EventPositions.Fault.ahead) { try found.get() }
        }
    }

    /// A damaged file may have a valid checksum.
    @Test(arguments: [(-1, 0, 8), (0, -1, 8), (0, 0, -8), (1 << 41, 0, 8), (0, 1 << 41, 8), (0, 0, 1 << 41)])
    func anIndexRunWithImpossibleSizesIsRejected(keys: Int, subjects: Int, filterWords: Int) {
        var trailer = IndexRunTrailer(
            logID: [], first: 1, last: 2, keys: 1, subjects: 1, filterWords: 8, fencesChecksum: 0,
            filterChecksum: 0)
        #expect(IndexRunLayout(trailer) != nil)
        (trailer.keys, trailer.subjects, trailer.filterWords) = (keys, subjects, filterWords)
        #expect(IndexRunLayout(trailer) == nil)
    }

    @Test func aKeyFilterNeedsWholeBlocks() {
        #expect(KeyFilter(words: []) == nil)
        #expect(KeyFilter(words: [0]) == nil)
    }

    @Test(arguments: [
        "idx-1-2-0.run", "idx-1-1-9.run", "idx-2-1-0.run", "idx-0-1-0.run", "idx-1-2--1.run", "idx-1-2.run",
        "abc-1-2-0.run", "idx-1-2-0.txt", "idx-1-99999999999-0.run", "idx--1-2.run", ".run", "idx-.run",
    ])
    func indexRunsAreRecognisedByTheirFileNames(file: String) {
        let isOne = ["idx-1-2-0.run", "idx-1-1-9.run"].contains(file)
        #expect(IndexRunName(file: file)?.file == (isOne ? file : nil))
    }

    /// Contents of the lock file while the gateway writes its addresses.
    @Test(arguments: ["", "http://127.0.0.1:1\n", "a\nb\n", "a\nb\nc\nd\n"])
    func aLockFileWithoutCompleteAddressesIsNotARunningGateway(text: String) throws {
        let folder = FileManager.default.temporaryDirectory.path + "/lock-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let lock = try DataDirectory(path: folder).lock()
        try Data(text.utf8).write(to: URL(fileURLWithPath: folder + "/gateway.lock"))
        #expect(RunningGateway(dataDirectory: folder) == nil)
        withExtendedLifetime(lock) {}
    }

    @Test func aLockFileThatCannotBeOpenedIsADataDirectoryError() throws {
        let folder = FileManager.default.temporaryDirectory.path + "/lock-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let directory = try DataDirectory(path: folder)
        try FileManager.default.createDirectory(
            atPath: folder + "/gateway.lock", withIntermediateDirectories: false)
        #expect(#expect(throws: GatewayError.self) { try directory.lock() }?.code == .dataDirectory)
    }

    @Test(arguments: [0, 31, 33]) func aTokenKeyHas32Bytes(count: Int) throws {
        let path = FileManager.default.temporaryDirectory.path + "/token-key-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: path) }
        #expect(try TokenKeySeal(file: path) == nil)
        let text = Base64URL.encode([UInt8](repeating: 1, count: count)) + "\n"
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        #expect(#expect(throws: GatewayError.self) { try TokenKeySeal(file: path) }?.code == .invalid)
    }
}
