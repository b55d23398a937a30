import CountersignCore
import CountersignGateway
import CountersignGatewayTesting
import CountersignJOSE
import CountersignTesting
import ExponeaSampleAsynchronous
import ExponeaSampleCaching
import ExponeaSampleToken
import GatewayModel
import TestSupport
import Testing

@testable import ExponeaCompat

/// Records the lines that the SDK logs.
final class RecordingLogger: Logger, @unchecked Sendable {
    // `@unchecked Sendable`: the lines have a lock.
    private let taken = Lock<[String]>([])
    var lines: [String] { taken.withLock { $0 } }
    override func log(_ level: ExponeaCompat.LogLevel, message: String) {
        if level <= .warning { taken.withLock { $0.append(message) } }
    }
}

/// The samples of the vendor's documentation on one shared instance, against a real gateway over a real socket.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct ExponeaSampleTests {
    private let fixture: GatewayFixture
    private let logger = RecordingLogger()
    private static let project = "0aef3a96-3804-11e8-b710-141877340e97"

    init() throws {
        fixture = try GatewayFixture(enforcement: .disabled)
        try fixture.apps.setProjectToken(Self.project, for: fixture.appID)
        try fixture.apps.setCustomerTokens(.required, for: fixture.appID)
        try fixture.apps.projects.putInboxMessage(
            id: "offer", type: "html", content: #"{"title":"Tea","message":"<p>Hi</p>"}"#,
            recipient: CustomerIdentifier(name: "registered", value: "ada"), in: fixture.appID)
        try fixture.gateway.refreshApps()
        Exponea.logger = logger
        Exponea.shared.setTestDependencies(
            dataDirectory: URL(fileURLWithPath: fixture.dataDirectory).appendingPathComponent("device"))
        Exponea.shared.authorizationProvider = nil
    }

    private func finish() async { await Exponea.shared.close() }

    private func configure(advancedAuthEnabled: Bool = true) {
        Exponea.shared.configure(
            projectToken: Self.project, authorization: .token(fixture.writeKey),
            baseUrl: "http://127.0.0.1:\(fixture.gateway.port)", advancedAuthEnabled: advancedAuthEnabled,
            flushingMode: .manual)
    }

    private func token(_ user: String = "ada", lifetime: Double = 600) throws -> String {
        try fixture.signingKey.sign(claims: [
            "sub": ["registered": .string(user)],
            "exp": .integer(Int64(Date().timeIntervalSince1970 + lifetime)),
        ])
    }

    private func inbox() async throws -> [MessageItem] {
        try await completion { Exponea.shared.fetchAppInbox(completion: $0) }.get()
    }

    private func markAsRead(_ message: MessageItem) async throws -> Bool {
        try await completion { Exponea.shared.markAppInboxAsRead(message, completition: $0) }
    }

    private func flush() async throws -> FlushResult {
        try await completion { Exponea.shared.flushData(completion: $0) }
    }

    private func storedNames() throws -> [String?] {
        try fixture.rows("name").map(\.[0])
    }

    // MARK: The samples themselves

    @Test(arguments: [
        ("Token/Documented/ExampleAuthProvider.swift", "ef68f8645793fc66"),
        ("Asynchronous/Documented/ExampleAuthProvider.swift", "4dbe5562587ef547"),
        ("Caching/Documented/ExampleAuthProvider.swift", "bf9dd61011cf375d"),
        ("Token/Configuring.swift", "75597eae01a565d2"),
    ])
    func vendorSamplesAreUnchanged(file: String, checksum: String) async throws {
        #expect(try sourceChecksum("../ExponeaSamples/" + file) == checksum)
        await finish()
    }

    // MARK: Configuring

    @Test func placeholdersAreRejectedWithAReason() async throws {
        for sample in [
            Configuring.withAPIKey, Configuring.withAccessToken, Configuring.withCustomerTokens,
            Configuring.withCustomerTokensAndAccessToken,
        ] {
            sample()
            #expect(!Exponea.shared.isConfigured)
        }
        #expect(
            logger.lines
                == Array(
                    repeating:
                        "Can't create configuration: the project token must be letters, digits and '-', and not empty",
                    count: 4))
        await finish()
    }

    @Test func withoutAValidProviderConfigurationFails() async throws {
        Exponea.shared.authorizationProvider = .className("No.Such")
        configure()
        #expect(!Exponea.shared.isConfigured)
        let line = "Advanced authorization flag has been enabled without provider"
        #expect(logger.lines == [line, "Can't create configuration: \(line)"])
        // A failed configuration does not prevent a later one.
        Exponea.shared.authorizationProvider = .instance(ExponeaSampleToken.ExampleAuthProvider())
        configure()
        #expect(Exponea.shared.isConfigured)
        await finish()
    }

    #if !canImport(ObjectiveC)
        @Test func withoutObjectiveCAProviderClassMustBeNamed() async throws {
            configure()
            #expect(logger.lines.first == "Advanced authorization flag has been enabled without provider")
            await finish()
        }
    #endif

    // MARK: Token authorization

    @Test func trackingAndFetchingWorkWithTheAPIKeyAlone() async throws {
        try fixture.apps.setCustomerTokens(.off, for: fixture.appID)
        try fixture.gateway.refreshApps()
        // Recorded before `configure`, and tracked once `configure` has succeeded.
        Exponea.shared.trackEvent(properties: ["early": true], eventType: "opened")
        configure(advancedAuthEnabled: false)
        Exponea.shared.identifyCustomer(customerIds: ["registered": "ada"], properties: ["age": 36])
        Exponea.shared.trackEvent(
            properties: ["total": 42.5, "items": ["tea", 2]], timestamp: 1_700_000_000, eventType: "purchase")
        Exponea.shared.trackPayment(properties: ["value": 99])
        let link = try #require(URL(string: "https://shop.example.com/?xnpe_cmp=abc"))
        Exponea.shared.trackCampaignClick(url: link)
        let result = try await flush()
        #expect(result.isComplete)
        #expect(try storedNames() == ["opened", nil, "purchase", "payment", "campaign_click"])
        // The customer's own messages require a customer token.
        #expect(try await inbox().isEmpty)
        await finish()
    }

    @Test func defaultPropertiesAndProjectMappingAreApplied() async throws {
        let second = try fixture.apps.createApp(id: "second")
        try fixture.gateway.refreshApps()
        Exponea.shared.configure(
            projectToken: Self.project,
            projectMapping: [
                .customEvent: [
                    ExponeaProject(projectToken: "second", authorization: .token(second.writeKey))
                ]
            ], authorization: .token(fixture.writeKey), baseUrl: "http://127.0.0.1:\(fixture.gateway.port)/",
            defaultProperties: ["app": "shop"], flushingMode: .manual)
        Exponea.shared.trackEvent(eventType: "seen")
        #expect(try await flush().delivered == 2)
        let rows = try fixture.rows("app_id", "name", "body").sorted { ($0[0] ?? "") < ($1[0] ?? "") }
        #expect(rows.map { Array($0.prefix(2)) } == [["second", "seen"], ["shop", "seen"]])
        #expect(rows.allSatisfy { $0[2]?.contains(#""app":"shop""#) == true })
        await finish()
    }

    @Test func configuringTwiceIsRejected() async throws {
        configure(advancedAuthEnabled: false)
        configure(advancedAuthEnabled: false)
        #expect(logger.lines == ["Exponea SDK already configured."])
        #expect(try Exponea.shared.configure(map: [:]) == false)
        await finish()
    }

    @Test func droppedCallsLogOneWarning() async {
        let exponea = Exponea()
        for _ in 0..<1_002 { exponea.trackEvent(eventType: "early") }
        #expect(logger.lines == ["Not configured yet, further calls are dropped"])
        await finish()
    }

    // MARK: Customer token authorization

    /// The first sample as printed. Its placeholder is not a token, so the gateway rejects it.
    @Test func sampleWithAPlaceholderIsRejectedByTheServer() async throws {
        Exponea.shared.authorizationProvider = .className("ExponeaSampleToken.ExampleAuthProvider")
        configure()
        Exponea.shared.identifyCustomer(customerIds: ["registered": "ada"])
        let error = await #expect(throws: CountersignError.self) { try await inbox() }
        #expect(error?.code == .authorizationRefused)
        #expect(error?.authCode == .decodingError)
        await finish()
    }

    @Test func blockingSampleFetchesAndMarks() async throws {
        let token = try token()
        yourAuthTokenReqUrl.answer { token }
        Exponea.shared.authorizationProvider = .className("ExponeaSampleAsynchronous.ExampleAuthProvider")
        configure()
        Exponea.shared.identifyCustomer(customerIds: ["registered": "ada"])
        let message = try #require(try await inbox().first)
        #expect(message.title == "Tea" && !message.isRead)
        #expect(try await markAsRead(message))
        #expect(try await inbox().map(\.isRead) == [true])
        // "you may return a NULL value but the request will automatically fail"
        yourAuthTokenReqUrl.answer { nil }
        let error = await #expect(throws: CountersignError.self) { try await inbox() }
        #expect(error?.code == .noCustomerToken)
        await finish()
    }

    @Test func cachingSampleLoadsOnceAndAgainAfterItsEndAndForAnotherCustomer() async throws {
        let token = try token()
        yourBackend.answer { (token, Date().timeIntervalSince1970 + 600) }
        Exponea.shared.authorizationProvider = .className("ExponeaSampleCaching.ExampleAuthProvider")
        configure()
        Exponea.shared.identifyCustomer(customerIds: ["registered": "ada"])
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<20 { group.addTask { _ = try await inbox() } }
            try await group.waitForAll()
        }
        #expect(yourBackend.callCount == 1)
        // The token of an earlier customer has its own error code.
        Exponea.shared.identifyCustomer(customerIds: ["registered": "grace"])
        let error = await #expect(throws: CountersignError.self) { try await inbox() }
        #expect(error?.code == .tokenOfAnotherCustomer)
        #expect(error?.authCode == .subjectMismatch)
        // After `anonymize`, the class is instantiated again with a new cache.
        Exponea.shared.anonymize()
        Exponea.shared.identifyCustomer(customerIds: ["registered": "grace"])
        let graces = try self.token("grace")
        yourBackend.answer { (graces, 0) }
        #expect(try await inbox().isEmpty)
        #expect(try await inbox().isEmpty)
        #expect(yourBackend.callCount == 2, "a token that has expired is loaded again")
        await finish()
    }

    @Test func expiredTokenIsRejectedAndTheNextOneWorks() async throws {
        let (expired, good) = (try token(lifetime: -600), try token())
        let tokens = Lock([good, expired])
        yourAuthTokenReqUrl.answer { tokens.withLock { $0.popLast() } }
        Exponea.shared.authorizationProvider = .instance(ExponeaSampleAsynchronous.ExampleAuthProvider())
        configure()
        Exponea.shared.identifyCustomer(customerIds: ["registered": "ada"])
        let error = await #expect(throws: CountersignError.self) { try await inbox() }
        #expect(error?.authCode == .expired)
        #expect(try await inbox().count == 1)
        await finish()
    }

    // MARK: Flutter's map and property lists

    private var map: [String: Any] {
        [
            "projectToken": Self.project, "authorizationToken": fixture.writeKey,
            "baseUrl": "http://127.0.0.1:\(fixture.gateway.port)", "flushMaxRetries": 10.0,
            "sessionTimeout": 60.0, "defaultProperties": ["app": "shop"], "flushMode": "MANUAL",
        ]
    }

    @Test func aMapOfTheFlutterPluginConfiguresTheSDK() async throws {
        #expect(try Exponea.shared.configure(map: map))
        Exponea.shared.trackEvent(eventType: "seen")
        #expect(try await flush().isComplete)
        #expect(try storedNames() == ["seen"])
        await finish()
    }

    @Test func sessionsInstallationAndPushTokensReachTheGateway() async throws {
        configure(advancedAuthEnabled: false)
        Exponea.shared.trackSessionStart()
        Exponea.shared.trackPushToken(Data([0xAB]))
        Exponea.shared.trackSessionEnd()
        #expect(try await flush().isComplete)
        #expect(try storedNames() == ["installation", "session_start", "notification_state", "session_end"])
        await finish()
    }

    @Test(
        arguments: [
            ("ios", "Advanced authorization flag has been enabled without provider"),
            (nil, "Advanced auth has been enabled but provider has not been found"),
        ] as [(String?, String)])
    func anInvalidMapFailsWithThePlatformsText(platform: String?, line: String) async throws {
        var map = map
        map["advancedAuthEnabled"] = true
        map["platform"] = platform
        let error = #expect(throws: CountersignError.self) { try Exponea.shared.configure(map: map) }
        #expect(error?.detail == line)
        #expect(logger.lines.first == line)
        #expect(!Exponea.shared.isConfigured)
        await finish()
    }

    @Test func flutterMapFindsTheManifestsProvider() async throws {
        let token = try token()
        yourAuthTokenReqUrl.answer { token }
        var map = map
        map["advancedAuthEnabled"] = true
        map["ExponeaAuthProvider"] = "ExponeaSampleAsynchronous.ExampleAuthProvider"
        #expect(try Exponea.shared.configure(map: map))
        Exponea.shared.identifyCustomer(customerIds: ["registered": "ada"])
        #expect(try await inbox().map(\.id) == ["offer"])
        await finish()
    }

    @Test func propertyListConfigures() async throws {
        let plist = """
            <?xml version="1.0" encoding="UTF-8"?>
            <plist version="1.0"><dict>
            <key>projectToken</key><string>\(Self.project)</string>
            <key>authorization</key><string>Token \(fixture.writeKey)</string>
            <key>baseUrl</key><string>http://127.0.0.1:\(fixture.gateway.port)</string>
            <key>advancedAuthEnabled</key><false/>
            </dict></plist>
            """
        let file = URL(fileURLWithPath: fixture.dataDirectory).appendingPathComponent("Exponea.plist")
        try Data(plist.utf8).write(to: file)
        Exponea.shared.flushingMode = .manual
        Exponea.shared.configure(plist: file)
        Exponea.shared.trackEvent(eventType: "seen")
        #expect(try await flush().isComplete)
        Exponea.shared.configure(plistName: "Missing")
        await Exponea.shared.close()
        Exponea.shared.configure(plistName: "Missing")
        #expect(logger.lines.last == "Can't create configuration: Configuration plist not found.")
        await finish()
    }

    @Test func apiKeysAreNotInDescriptions() {
        var dumped = ""
        dump(Authorization.token("very-secret"), to: &dumped)
        #expect(!"\(Authorization.token("very-secret")) \(dumped)".contains("very-secret"))
    }
}
