import CountersignCore
import CountersignTransport
import Foundation
import Testing

@testable import CountersignLocations

struct RefreshRequestTests {
    private var configuration: AuthorizationConfiguration {
        var configuration = AuthorizationConfiguration()
        configuration.refreshUrl = "https://auth.domain.com/tokens"
        configuration.refreshPayload = ["my_refresh_token": "{refreshToken}"]
        return configuration
    }

    private func request(
        _ configuration: AuthorizationConfiguration, common: [String: String] = [:],
        origin: String = "https://app.domain.com/locations"
    ) throws -> TransportRequest {
        try #require(
            RefreshRequest(
                configuration: configuration, commonHeaders: common, commonOrigin: URL(string: origin)
            ).make(accessToken: "XXX.YYY.ZZZ", refreshToken: "smT&f= +%ü"))
    }

    private func fields(_ request: TransportRequest) -> [String] {
        request.headers.map { "\($0.name): \($0.value)" }
    }

    /// Runs `body` on a thread with this stack size, and waits for its end.
    private func onThread(stackSize: Int, _ body: @escaping @Sendable () -> Void) {
        let isOver = DispatchSemaphore(value: 0)
        let thread = Thread {
            body()
            isOver.signal()
        }
        thread.stackSize = stackSize
        thread.start()
        isOver.wait()
    }

    /// JSON and form payloads have the same depth limit as event properties.
    @Test(arguments: ["application/json", "application/x-www-form-urlencoded"])
    func aPayloadThatIsNestedDeeplyIsCut(type: String) {
        var configuration = configuration
        configuration.refreshHeaders = ["Content-Type": type]
        let given = configuration
        // Releasing the value takes 200 bytes of stack for each level.
        onThread(stackSize: 16 << 20) {
            var configuration = given
            configuration.refreshPayload = [
                "deep": (0..<20_000).reduce(JSONValue.string("{refreshToken}")) { inner, _ in ["a": inner] },
                "token": "{refreshToken}",
            ]
            let box = Lock(configuration)
            configuration.refreshPayload = nil
            onThread(stackSize: 512 << 10) {
                let deep = box.withLock { $0 }
                deep.warnAboutPayload(log: nil)
                let request = RefreshRequest(configuration: deep).make(accessToken: nil, refreshToken: "R")
                #expect(request?.body.isEmpty == false && request?.body.count ?? 0 < 1_000)
            }
            // Released here, because this thread's stack is large enough.
            box.withLock { $0.refreshPayload = nil }
        }
    }

    @Test func formIsByteForByteAsCurlWritesIt() throws {
        var configuration = configuration
        // The example of Transistorsoft's documentation.
        configuration.refreshPayload = [
            "my_refresh_token": "{refreshToken}", "grant_type": "refresh_token",
            "foo": "another arbitrary field",
        ]
        let request = try request(configuration)
        #expect(
            String(decoding: request.body, as: UTF8.self)
                == "foo=another%20arbitrary%20field&grant_type=refresh_token&my_refresh_token=smT%26f%3D%20%2B%25%C3%BC"
        )
        #expect(request.url.absoluteString == "https://auth.domain.com/tokens")
        #expect(
            fields(request) == [
                "Accept: application/json", "Authorization: Bearer XXX.YYY.ZZZ",
                "Content-Type: application/x-www-form-urlencoded",
            ])
    }

    @Test func placeholdersAreReplacedInTextsAndObjects() throws {
        var configuration = configuration
        configuration.refreshPayload = [
            "a": "Bearer {refreshToken}!", "b": ["c": "{accessToken}", "d": ["{refreshToken}", 7]], "e": true,
            "f": nil,
            "g": "{other}{",
        ]
        #expect(
            String(decoding: try request(configuration).body, as: UTF8.self)
                == "a=Bearer%20smT%26f%3D%20%2B%25%C3%BC%21&b%5Bc%5D=XXX.YYY.ZZZ&b%5Bd%5D%5B0%5D=smT%26f%3D%20%2B%25%C3%BC"
                + "&b%5Bd%5D%5B1%5D=7&e=true&f=&g=%7Bother%7D%7B")
    }

    @Test func aTokenThatLooksLikeAPlaceholderIsNotReplaced() throws {
        var configuration = configuration
        configuration.refreshPayload = ["a": "{accessToken} {refreshToken}"]
        let request = RefreshRequest(configuration: configuration).make(
            accessToken: "{refreshToken}", refreshToken: "R")
        #expect(
            String(decoding: request?.body ?? [], as: UTF8.self) == "a=%7BrefreshToken%7D%20R")
    }

    @Test(arguments: ["Content-Type", "content-type", "CONTENT-TYPE"])
    func aJSONPayloadKeepsTheTypesOfItsValues(name: String) throws {
        var configuration = configuration
        configuration.refreshHeaders = [name: "application/json; charset=utf-8"]
        configuration.refreshPayload = ["t": "{refreshToken}", "n": 7, "b": false, "o": ["x": nil]]
        let request = try request(configuration)
        #expect(
            String(decoding: request.body, as: UTF8.self)
                == #"{"b":false,"n":7,"o":{"x":null},"t":"smT&f= +%ü"}"#)
        #expect(fields(request) == ["Accept: application/json", "\(name): application/json; charset=utf-8"])
    }

    @Test func withEmptyRefreshHeadersOnlyContentTypeIsSent() throws {
        var configuration = configuration
        configuration.refreshHeaders = [:]
        #expect(
            fields(try request(configuration, common: ["X-App": "1"])) == [
                "Content-Type: application/x-www-form-urlencoded"
            ])
    }

    @Test func refreshHeadersOverrideDefaultHeaders() throws {
        var configuration = configuration
        configuration.refreshHeaders = ["x-app": "2", "X-Old": "{accessToken}/{refreshToken}"]
        configuration.refreshToken = "r"
        let request = RefreshRequest(
            configuration: configuration, commonHeaders: ["X-App": "1", "Content-Type": "text/plain"]
        )
        .make(accessToken: "a", refreshToken: "r")
        #expect(
            fields(try #require(request)) == [
                "Accept: application/json", "Content-Type: application/x-www-form-urlencoded", "x-app: 2",
                "X-Old: a/r",
            ])
    }

    @Test func sharedAccessSignatureIsSentBare() throws {
        var configuration = configuration
        configuration.strategy = "sas"
        #expect(try request(configuration).header("Authorization") == "XXX.YYY.ZZZ")
    }

    @Test func credentialHeadersAreSentOnlyToTheirOrigin() throws {
        var configuration = configuration
        configuration.refreshHeaders = ["X": "1"]
        let common = ["Authorization": "Basic c2VjcmV0", "Cookie": "s=1", "X-Api-Key": "k"]
        let other = try request(configuration, common: common)
        #expect(other.header("Authorization") == nil)
        #expect(other.header("Cookie") == nil)
        #expect(other.header("X-Api-Key") == "k")
        let same = try request(configuration, common: common, origin: "https://auth.domain.com:443/locations")
        #expect(same.header("Authorization") == "Basic c2VjcmV0")
        for origin in ["http://auth.domain.com/", "https://auth.domain.com:444/"] {
            #expect(try request(configuration, common: common, origin: origin).header("Authorization") == nil)
        }
    }

    @Test func headersWithInvalidNamesOrValuesAreDropped() throws {
        var configuration = configuration
        configuration.refreshHeaders = ["X-A": "1\r\nX-B: 2", "X C": "3", "X-D": "ü", "X-E": "fine"]
        #expect(fields(try request(configuration)).filter { $0.hasPrefix("X") } == ["X-E: fine"])
    }

    @Test(arguments: [nil, "", "  ", "ftp://a/b", "https://", "no url", "/path"])
    func withoutAServerThereIsNoRequest(url: String?) {
        var configuration = configuration
        configuration.refreshUrl = url
        #expect(RefreshRequest(configuration: configuration).make(accessToken: "a", refreshToken: "r") == nil)
    }

    @Test func withoutFieldsThereIsNoRequest() {
        var configuration = configuration
        for payload: JSONObject? in [nil, [:]] {
            configuration.refreshPayload = payload
            #expect(
                RefreshRequest(configuration: configuration).make(accessToken: "a", refreshToken: "r") == nil)
        }
    }
}
