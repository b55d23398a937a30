import CountersignCore
import CountersignTesting
import CountersignTransport
import Foundation
import TestSupport
import Testing

@testable import Countersign
@testable import CountersignDelivery

/// The facts that events carry, the app's own header fields, and errors of the endpoint.
@Suite(.closing, .timeLimit(.minutes(5)))
struct EventContextTests {
    private func contexts(_ request: TransportRequest) throws -> [JSONObject] {
        let body = try #require(JSONDocument.object(request.body))
        return body["batch"]?.array?.compactMap { $0["context"]?.object } ?? []
    }

    @Test func eventsCarryTheAppTheSystemTheDeviceAndTheSDK() async throws {
        let (bench, client) = try Bench.open {
            $0.context.appVersion = "2.1"
            $0.context.appBuild = "17"
        }
        client.track("one")
        await client.flush()
        let request = try #require(bench.transport.requests.last)
        let context = try #require(try contexts(request).first)
        #expect(context["app"] == ["version": "2.1", "build": "17"])
        #expect(context["library"] == ["name": "countersign-swift", "version": .string(SDKVersion.current)])
        for (part, name) in [("os", "name"), ("os", "version"), ("device", "model")] {
            #expect(context[part]?[name]?.string?.isEmpty == false, "\(part).\(name)")
        }
        #expect(context["sessionId"] != nil)
        #expect(request.header("User-Agent") == "countersign-swift/\(SDKVersion.current) app/2.1")
    }

    @Test func partsOfTheContextCanBeOmitted() throws {
        var context = EventContext()
        context.appVersion = "2.1"
        context.parts = [.os]
        #expect(Set(context.json.keys) == ["library", "os"])
        #expect(Set(context.properties.keys) == ["sdk", "sdk_version", "os_name", "os_version"])
        #expect(context.userAgent == "countersign-swift/\(SDKVersion.current)")
        context.parts = [.app]
        #expect(context.properties["app_version"] == "2.1")
        context.appVersion = "2.1 beta\r\nX-Evil: 1"
        #expect(context.userAgent == "countersign-swift/\(SDKVersion.current)")
        let read = try EventContext(["parts": ["locale", "app"], "appVersion": "3", "library": "x"])
        #expect(read.parts == [.app, .locale] && read.appVersion == "3" && read.library == "x")
        for wrong: JSONObject in [
            ["parts": ["screen"]], ["parts": "app"], ["version": "2"], ["appVersion": 2],
        ] {
            #expect(throws: CountersignError.self) { try EventContext(wrong) }
        }
    }

    /// One message id must never have two contents.
    @Test func anUpdateOfTheAppDoesNotChangeWaitingEvents() async throws {
        var bench = try Bench()
        bench.configuration.context.appVersion = "1.0"
        let before = try bench.makeClient()
        _ = try await before.record("old")
        await before.close()
        bench.configuration.context.appVersion = "2.0"
        let after = try bench.makeClient()
        _ = try await after.record("new")
        await after.flush()
        let request = try #require(bench.transport.requests.last)
        #expect(try contexts(request).map { $0["app"]?["version"] } == ["1.0", "2.0"])
        #expect(request.header("User-Agent")?.hasSuffix(" app/2.0") == true)
    }

    @Test func theAppsHeaderFieldsAreSentAndReservedNamesAreRejected() async throws {
        let (bench, client) = try Bench.open { $0.headers = ["X-Proxy-Key": "k"] }
        client.track("one")
        await client.flush()
        #expect(bench.transport.requests.last?.header("X-Proxy-Key") == "k")
        for name in [
            "authorization", "X-Write-Key", "content-encoding", "X-Braze-Api-Key", "X-Countersign-Signature",
            "bad name",
        ] {
            let error = #expect(throws: CountersignError.self, "\(name)") {
                try Bench.open { $0.headers = [name: "x"] }
            }
            #expect(error?.code == .invalidConfiguration && error?.detail.contains(name) == true)
        }
    }

    @Test(arguments: [
        ("gateway.example", "no scheme"), ("ftp://gateway.example", "begins with ftp:"),
        ("https:///path", "no host"), ("https://a:b@gateway.example", "user info"),
        ("https://gateway.example?x=1", "a query"), ("https://gateway.example#x", "a fragment"),
    ])
    func theErrorSaysWhatIsWrongWithTheEndpoint(text: String, problem: String) throws {
        let url = try #require(URL(string: text))
        let error = #expect(throws: CountersignError.self) { try Bench.open { $0.endpoint = url } }
        #expect(error?.detail.contains(problem) == true, "\(error?.detail ?? "")")
    }
}
