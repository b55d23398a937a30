import CountersignCrypto
import CountersignGatewayTesting
import Foundation
import GatewayModel
import GatewayTestSupport
import Testing

@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct BloomreachSelfCheckTests {
    private let client: BloomreachClient

    init() throws {
        client = try BloomreachClient()
    }

    private let body =
        #"{"platform":"ios","push_notification_id":"abc123","customer_ids":{"cookie":"c","registered":"jane"}}"#

    private func check(_ body: String? = nil) -> TestAnswer? {
        client.post("/campaigns/send-self-check-notification?project_id={p}", body ?? self.body)
    }

    @Test func aSelfCheckIsSentSignedToTheWebhook() throws {
        let receiver = try WebhookServer { _ in .answer(204) }
        defer { receiver.close() }
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
        try client.edit {
            _ = try $0.setPushWebhook(
                url: "http://127.0.0.1:\(receiver.port)/push?tenant=1", secret: secret,
                allowsPrivateAddresses: true, for: "shop")
        }
        let answer = try #require(
            client.post(
                "/campaigns/send-self-check-notification?project_id={p}", body,
                extra: ["traceparent": Traced.caller]))
        #expect(answer.status == 200)
        #expect(answer.body == #"{"success":true}"# + "\n")
        let request = try #require(receiver.request())
        // A gateway that records no traces forwards `traceparent` unchanged.
        #expect(request.headers["traceparent"] == Traced.caller)
        #expect(request.head == "POST /push?tenant=1 HTTP/1.1")
        #expect(request.headers["content-type"] == "application/json")
        let event = try #require(try JSONSerialization.jsonObject(with: Data(request.body)) as? [String: Any])
        #expect(event["type"] as? String == "push.self_check")
        let data = try #require(event["data"] as? [String: Any])
        #expect(data["project_id"] as? String == client.project)
        #expect(data["platform"] as? String == "ios")
        #expect(data["push_notification_id"] as? String == "abc123")
        #expect(data["customer_ids"] as? [String: String] == ["cookie": "c", "registered": "jane"])
        // Verifies the signature as the Standard Webhooks specification describes.
        let id = try #require(request.headers["webhook-id"])
        let timestamp = try #require(request.headers["webhook-timestamp"].flatMap(Int64.init))
        #expect(abs(Double(timestamp) - Date().timeIntervalSince1970) < 60)
        let key = try #require(Data(base64Encoded: String(secret.dropFirst(6))))
        let code = HMACSHA256.authenticate(Array("\(id).\(timestamp).".utf8) + request.body, key: Array(key))
        #expect(request.headers["webhook-signature"] == "v1," + Data(code).base64EncodedString())
    }

    @Test func aMissingWebhookIsReported() throws {
        let answer = try #require(check())
        guard case .missingData(let text) = ShippedClient.outcome(answer) else {
            Issue.record("the client would take it for a success")
            return
        }
        #expect(text.contains("no push webhook"))
        #expect(answer.json["success"] as? Bool == false)
    }

    @Test func aRejectingOrUnreachableWebhookIsAFailure() throws {
        for status in [500, 302] {
            let receiver = try WebhookServer { _ in .answer(status, headers: ["Location": "/other"]) }
            try client.edit {
                _ = try $0.setPushWebhook(
                    url: "http://127.0.0.1:\(receiver.port)/", allowsPrivateAddresses: true, for: "shop")
            }
            let answer = try #require(check())
            #expect(answer.status == 502)
            #expect((answer.json["error"] as? String)?.contains("\(status)") == true)
            #expect(receiver.requests.count == 1)
            receiver.close()
        }
        let answer = try #require(check())
        #expect(answer.status == 502)
        #expect(!answer.body.contains("127.0.0.1"))
    }

    @Test(arguments: [
        #"{"push_notification_id":"x"}"#, #"{"platform":"ios"}"#,
        #"{"platform":"ios","push_notification_id":""}"#, #"{"platform":7,"push_notification_id":"x"}"#, "[]",
    ])
    func invalidSelfCheckRequestsAreRejected(body: String) throws {
        #expect(check(body)?.status == 400)
    }

    @Test func theProjectComesFromTheQuery() throws {
        let path = "/campaigns/send-self-check-notification"
        #expect(client.post(path, body)?.json["error"] as? String == "Invalid project id")
        #expect(client.post(path + "?project_id=nobody", body)?.status == 400)
        #expect(client.post(path + "?project_id={p}", body, authorization: "Token x")?.status == 401)
    }
}
