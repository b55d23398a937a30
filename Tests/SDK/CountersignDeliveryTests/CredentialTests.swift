import CountersignTransport
import Foundation
import Testing

@testable import CountersignDelivery

struct CredentialTests {
    @Test(arguments: [
        (Credential.Scheme.bearer, "Authorization", "Bearer sr=x&sig=y"),
        (.scheme("Token"), "Authorization", "Token sr=x&sig=y"), (.bare, "Authorization", "sr=x&sig=y"),
        (.field("X-Signature"), "X-Signature", "sr=x&sig=y"),
    ])
    func aTokenReplacesTheAppsHeader(
        scheme: Credential.Scheme, name: String, value: String
    ) throws {
        let token = try #require(SignedToken.accessToken("sr=x&sig=y"))
        let request = TransportRequest(
            method: "PUT", url: try #require(URL(string: "https://a.example/b")),
            headers: [("Accept", "*/*"), (name.lowercased(), "old")], body: [1, 2], timeout: 7,
            maximumResponseBytes: 9)
        let signed = Credential(scheme, token: token).applied(to: request)
        #expect(signed.headers.map(\.name) == ["Accept", name])
        #expect(signed.header(name) == value)
        #expect(signed.method == "PUT" && signed.url == request.url && signed.body == [1, 2])
        #expect(signed.timeout == 7 && signed.maximumResponseBytes == 9)
    }

    @Test func withoutATokenOrWithTokensTurnedOffNothingIsAdded() throws {
        let request = TransportRequest(
            url: try #require(URL(string: "https://a.example/b")), headers: [("Accept", "*/*")], body: [])
        let token = try #require(SignedToken("a.b.c"))
        for credential in [Credential(.withheld, token: token), Credential(.bearer, token: nil)] {
            #expect(credential.applied(to: request).headers.map(\.name) == ["Accept"])
        }
    }
}
