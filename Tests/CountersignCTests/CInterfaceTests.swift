import CountersignCore
import CountersignGateway
import CountersignGatewayTesting
import CountersignJOSE
import CountersignSQLite
import Foundation
import GatewayModel
import Testing

/// `libcountersign` as other languages use it, against a real gateway.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct CInterfaceTests {
    private static let drivers = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("Drivers").path
    private static let header = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../Sources/CCountersign/include").standardized.path

    /// Beside the test runner, where the package's products are.
    private static var library: String? {
        #if canImport(Darwin)
            let name = "libCountersignC.dylib"
        #else
            let name = "libCountersignC.so"
        #endif
        let starts = [Bundle.main.bundleURL, URL(fileURLWithPath: CommandLine.arguments[0])]
        for start in starts {
            var folder = start
            for _ in 0..<4 {
                let path = folder.appendingPathComponent(name).path
                if FileManager.default.fileExists(atPath: path) { return path }
                folder.deleteLastPathComponent()
            }
        }
        return nil
    }

    private let fixture: GatewayFixture

    init() throws {
        fixture = try GatewayFixture(enforcement: .disabled)
        try fixture.apps.setCustomerTokens(.required, for: fixture.appID)
        try fixture.apps.projects.putInboxMessage(
            id: "offer", type: "html", content: #"{"title":"Tea"}"#,
            recipient: CustomerIdentifier(name: "registered", value: "ada"), in: fixture.appID)
        try fixture.apps.projects.put(
            .recommendationEngine, json: #"{"id":"engine","items":[{"item_id":"1"}]}"#, in: fixture.appID)
        try fixture.apps.projects.put(.consentCategory, json: #"{"id":"newsletter"}"#, in: fixture.appID)
        try fixture.apps.projects.put(
            .inAppMessage, json: #"{"id":"hello","name":"Hello","trigger":{"event_type":"session_start"}}"#,
            in: fixture.appID)
        try fixture.gateway.refreshApps()
    }

    private var configuration: String {
        let json: JSONValue = [
            "projectToken": .string(fixture.appID), "authorizationToken": .string(fixture.writeKey),
            "baseUrl": .string("http://127.0.0.1:\(fixture.gateway.port)"), "advancedAuthEnabled": true,
            "flushMode": "MANUAL", "platform": "android",
            "dataDirectory": .string(fixture.dataDirectory + "/device"),
        ]
        return String(decoding: json.bytes, as: UTF8.self)
    }

    private func token() throws -> String {
        try fixture.signingKey.sign(claims: [
            "sub": ["registered": "ada"], "exp": .integer(Int64(Date().timeIntervalSince1970 + 600)),
        ])
    }

    private struct Finished {
        let status: Int32
        let output: Data
        let errors: String
    }

    /// On a thread of its own: Swift's are as few as there are cores, and all tests need them.
    private static func run(_ arguments: [String], in folder: String? = nil) async throws -> Finished {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                continuation.resume(with: Result { try runAndWait(arguments, in: folder) })
            }
        }
    }

    private static func runAndWait(_ arguments: [String], in folder: String?) throws -> Finished {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = arguments
        if let folder { process.currentDirectoryURL = URL(fileURLWithPath: folder) }
        let (output, errors) = (Pipe(), Pipe())
        process.standardOutput = output
        process.standardError = errors
        try process.run()
        let data = output.fileHandleForReading.readDataToEndOfFile()
        let words = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return Finished(status: process.terminationStatus, output: data, errors: words)
    }

    private static func has(_ program: String) async -> Bool {
        (try? await run([program, program == "javac" ? "-version" : "--version"]).status) == 0
    }

    private func storedNames() throws -> [String?] {
        let database = try SQLiteConnection(path: "\(fixture.dataDirectory)/events.sqlite", mode: .readOnly)
        return try database.all("SELECT name FROM event ORDER BY seq") { row throws(SQLiteError) in
            row.optionalText(0)
        }
    }

    @Test func pythonDrivesEveryCallWithAProviderThatAnswersLater() async throws {
        guard await Self.has("python3") else { try Test.cancel("there is no python3 on this machine") }
        let library = try #require(Self.library, "the product CountersignC was not built")
        let finished = try await Self.run([
            "python3", "\(Self.drivers)/driver.py", library, configuration, try token(),
        ])
        #expect(finished.status == 0, "\(finished.errors)")
        let output = try #require(
            try JSONSerialization.jsonObject(with: finished.output) as? [String: Any])
        func value(_ name: String) -> Any? { (output[name] as? [String: Any])?["value"] }
        func error(_ name: String) -> [String: Any] {
            (output[name] as? [String: Any])?["error"] as? [String: Any] ?? [:]
        }
        func ids(_ name: String) -> [String?] {
            (value(name) as? [[String: Any]] ?? []).map { $0["id"] as? String }
        }
        // Configuring
        #expect(
            output["no_json"] as? String == "invalid_configuration: the configuration must be a JSON object")
        #expect(output["no_project"] as? String == "invalid_configuration: projectToken must be given")
        let line = "Advanced auth has been enabled but provider has not been found"
        #expect(output["no_provider"] as? String == "invalid_configuration: \(line)")
        #expect(output["refusal_events"] as? [String] == [line])
        // Tracking
        #expect((value("flush") as? [String: Any])?["delivered"] as? Int == 12)
        let names: [String?] = [nil] + (0..<10).map { "event \($0)" } + ["campaign_click"]
        #expect(try storedNames() == names)
        #expect((value("ids") as? [String: String])?["registered"] == "ada")
        // Asking
        // What is known of a customer with a hard id takes a token of theirs, and the API key is none.
        #expect((value("city") as? [[String: Any]])?.first?["success"] as? Bool == false)
        #expect((value("recommendations") as? [[String: Any]])?.first?["item_id"] as? String == "1")
        #expect(ids("consents") == ["newsletter"])
        #expect(ids("in_app") == ["hello"])
        #expect(ids("inbox") == ["offer"])
        #expect(value("mark") is NSNull)
        #expect((value("inbox_again") as? [[String: Any]])?.first?["is_read"] as? Bool == true)
        #expect(error("self_check")["status"] as? Int == 409)
        // Failing
        #expect(error("no_token")["code"] as? String == "no_customer_token")
        #expect(error("bad_token")["code"] as? String == "authorization_refused")
        #expect(error("bad_token")["auth_code"] as? Int == 20)
        #expect(error("unknown")["detail"] as? String == "there is no method fly")
        #expect(error("wrong")["detail"] as? String == "eventType must be a text that is not empty")
        #expect((value("ids_after") as? [String: String])?.count == 1)
        // Fetch, mark, fetch, without a token, with a bad one: asked each time, never on the main thread.
        #expect(output["asked"] as? Int == 5)
        #expect(output["all_off_main"] as? Bool == true)
    }

    @Test func javaDrivesItThroughJNIWithAProviderOfItsOwn() async throws {
        guard await Self.has("javac"), await Self.has("cc") else {
            try Test.cancel("there is no JDK or no C compiler on this machine")
        }
        let library = try #require(Self.library, "the product CountersignC was not built")
        let folder = fixture.dataDirectory + "/java"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let compiled = try await Self.run(
            ["javac", "-d", folder]
                + ["Driver", "AuthorizationProvider", "ExampleAuthProvider"].map {
                    "\(Self.drivers)/\($0).java"
                })
        #expect(compiled.status == 0, "\(compiled.errors)")
        let home = try await Self.run(["java", "-XshowSettings:properties", "-version"]).errors
            .components(separatedBy: "\n").first { $0.contains("java.home = ") }?
            .components(separatedBy: " = ").last
        let include = try #require(home) + "/include"
        #if canImport(Darwin)
            let system = "darwin"
        #else
            let system = "linux"
        #endif
        let place = URL(fileURLWithPath: library).deletingLastPathComponent().path
        let linked = try await Self.run([
            "cc", "-shared", "-fPIC", "-I", include, "-I", "\(include)/\(system)", "-I", Self.header, "-o",
            "\(folder)/libbridge.so", "\(Self.drivers)/bridge.c", "-L", place, "-lCountersignC",
            "-Wl,-rpath,\(place)",
        ])
        #expect(linked.status == 0, "\(linked.errors)")
        let finished = try await Self.run([
            "java", "-cp", folder, "Driver", "\(folder)/libbridge.so", configuration, try token(),
        ])
        #expect(finished.status == 0, "\(finished.errors)")
        let lines = String(decoding: finished.output, as: UTF8.self).components(separatedBy: "\n")
        #expect(lines.first == #"flush {"value":{"delivered":2,"ending":"drained","queued":0}}"#)
        #expect(lines.dropFirst().first?.contains(#""id":"offer""#) == true)
        #expect(lines.dropFirst(2).first == #"mark {"value":null}"#)
        #expect(lines.dropFirst(3).first == "loads 1 off main true")
        #expect(try storedNames() == [nil, "from java"])
    }
}
