import CountersignGatewayTesting
import CountersignJOSE
import Foundation
import Testing

@testable import CountersignGateway
@testable import GatewayHTTP
@testable import GatewayModel

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

    @Test func theRequestIsHandedToTheWebhookSigned() throws {
        defer { client.remove() }
        let receiver = try WebhookReceiver(status: 204)
        defer { receiver.close() }
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
        try client.edit {
            _ = try $0.setPushWebhook(
                url: "http://127.0.0.1:\(receiver.port)/push?tenant=1", secret: secret,
                allowsPrivateAddresses: true, for: "shop")
        }
        let answer = try #require(check())
        #expect(answer.status == 200)
        #expect(answer.body == #"{"success":true}"#)
        let request = try #require(receiver.request())
        #expect(request.head == "POST /push?tenant=1 HTTP/1.1")
        #expect(request.headers["content-type"] == "application/json")
        let event = try #require(
            try JSONSerialization.jsonObject(with: Data(request.body)) as? [String: Any])
        #expect(event["type"] as? String == "push.self_check")
        let data = try #require(event["data"] as? [String: Any])
        #expect(data["project_id"] as? String == client.project)
        #expect(data["platform"] as? String == "ios")
        #expect(data["push_notification_id"] as? String == "abc123")
        #expect(data["customer_ids"] as? [String: String] == ["cookie": "c", "registered": "jane"])
        // The receiver's own check, as the Standard Webhooks specification has it.
        let id = try #require(request.headers["webhook-id"])
        let timestamp = try #require(request.headers["webhook-timestamp"].flatMap(Int64.init))
        #expect(abs(Double(timestamp) - Date().timeIntervalSince1970) < 60)
        let key = try #require(Data(base64Encoded: String(secret.dropFirst(6))))
        let code = HMACSHA256.authenticate(
            Array("\(id).\(timestamp).".utf8) + request.body, key: Array(key))
        #expect(request.headers["webhook-signature"] == "v1," + Data(code).base64EncodedString())
    }

    /// The example of the Standard Webhooks libraries.
    @Test func theSignatureIsThatOfTheSpecification() throws {
        defer { client.remove() }
        let key = try #require(StandardWebhook.key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))
        let headers = StandardWebhook.headers(
            id: "msg_p5jXN8AQM9LWM0D4loKWxJek", timestamp: 1_614_265_330,
            body: Array(#"{"test": 2432232314}"#.utf8), key: key)
        #expect(headers.last?.value == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
    }

    @Test func withoutAWebhookItSaysSo() throws {
        defer { client.remove() }
        let answer = try #require(check())
        guard case .missingData(let text) = ShippedClient.outcome(answer) else {
            Issue.record("the client would take it for a success")
            return
        }
        #expect(text.contains("no push webhook"))
        #expect(answer.json["success"] as? Bool == false)
    }

    @Test func aWebhookThatRefusesOrIsNotThereIsNoSuccess() throws {
        defer { client.remove() }
        for status in [500, 302] {
            let receiver = try WebhookReceiver(status: status)
            try client.edit {
                _ = try $0.setPushWebhook(
                    url: "http://127.0.0.1:\(receiver.port)/", allowsPrivateAddresses: true, for: "shop")
            }
            let answer = try #require(check())
            #expect(answer.status == 502)
            #expect((answer.json["error"] as? String)?.contains("\(status)") == true)
            receiver.close()
        }
        let answer = try #require(check())
        #expect(answer.status == 502)
        #expect(!answer.body.contains("127.0.0.1"))
    }

    @Test func aPrivateAddressIsRefusedUnlessItIsAllowed() throws {
        defer { client.remove() }
        let receiver = try WebhookReceiver(status: 200)
        for host in ["127.0.0.1", "localhost", "2130706433"] {
            try client.edit {
                _ = try $0.setPushWebhook(url: "http://\(host):\(receiver.port)/", for: "shop")
            }
            let answer = try #require(check())
            #expect(answer.status == 502)
            #expect((answer.json["error"] as? String)?.contains("private") == true, "\(host)")
        }
        receiver.close()
        #expect(receiver.request() == nil)
    }

    @Test(arguments: [
        ("8.8.8.8", true), ("172.15.255.255", true), ("172.32.0.0", true), ("223.255.255.255", true),
        ("2606:4700::1111", true), ("2a00:1450::1", true), ("::ffff:8.8.8.8", true),
        ("0.0.0.0", false), ("10.1.2.3", false), ("100.64.0.1", false), ("127.0.0.1", false),
        ("169.254.169.254", false), ("172.16.0.1", false), ("172.31.255.255", false), ("192.0.0.8", false),
        ("192.0.2.1", false), ("192.88.99.1", false), ("192.168.1.1", false), ("198.18.0.1", false),
        ("198.51.100.1", false), ("203.0.113.1", false), ("224.0.0.1", false), ("255.255.255.255", false),
        ("::", false), ("::1", false), ("::ffff:10.0.0.1", false), ("64:ff9b::a00:1", false),
        ("64:ff9b::808:808", true),
        ("fc00::1", false), ("fd12::1", false), ("fe80::1", false), ("ff02::1", false),
        ("2001::1", false), ("2001:db8::1", false), ("2002:a00:1::", false), ("3fff::1", false),
    ])
    func onlyThePublicInternetIsPublic(address: String, isPublic: Bool) throws {
        client.remove()
        #expect((try #require(NetworkAddress(address)).reach == .everywhere) == isPublic)
    }

    @Test(arguments: [
        "169.254.169.254", "169.254.0.1", "fe80::1", "febf::1", "::ffff:169.254.169.254",
        "::169.254.169.254", "64:ff9b::a9fe:a9fe", "64:ff9b:1::a9fe:a9fe", "2002:a9fe:a9fe::1",
        "2001:0:4136:e378:8000:63bf:5601:5601", "2a00:1450::5efe:a9fe:a9fe",
        "2a00:1450::200:5efe:169.254.169.254",
        "fd00:ec2::254", "fd20:ce::254", "100.100.100.200", "168.63.129.16", "192.0.0.192",
    ])
    func someAddressesAreOutOfReachForAll(address: String) throws {
        client.remove()
        let target = try #require(NetworkAddress(address))
        #expect(target.reach == .never)
        for allows in [false, true] {
            let exchange = OutboundRequest.Exchange(allowsPrivate: allows, maximumBytes: 1)
            #expect(exchange.refusal(of: target, port: 443) != nil)
        }
    }

    @Test(arguments: [
        ("8.8.8.8", 25, false), ("8.8.8.8", 443, true), ("8.8.8.8", 80, true), ("8.8.8.8", 8443, true),
    ])
    func portsAreThoseOfWebServersUnlessAnOwnerAllowsMore(address: String, port: Int, isOpen: Bool) throws {
        client.remove()
        let target = try #require(NetworkAddress(address))
        let port = UInt16(port)
        let (strict, open) = (
            OutboundRequest.Exchange(allowsPrivate: false, maximumBytes: 1),
            OutboundRequest.Exchange(allowsPrivate: true, maximumBytes: 1)
        )
        #expect((strict.refusal(of: target, port: port) == nil) == isOpen)
        #expect(open.refusal(of: target, port: port) == nil)
    }

    @Test func aLinkLocalAddressIsRefusedEvenWhereAnOwnerAllowsPrivateOnes() throws {
        defer { client.remove() }
        for host in ["169.254.169.254", "[fe80::1]", "[::ffff:169.254.169.254]"] {
            try client.edit {
                _ = try $0.setPushWebhook(url: "http://\(host)/", allowsPrivateAddresses: true, for: "shop")
            }
            let answer = try #require(check())
            #expect(answer.status == 502)
            #expect((answer.json["error"] as? String)?.contains("link-local") == true, "\(answer.body)")
        }
    }

    @Test(arguments: [
        #"{"push_notification_id":"x"}"#, #"{"platform":"ios"}"#,
        #"{"platform":"ios","push_notification_id":""}"#, #"{"platform":7,"push_notification_id":"x"}"#, "[]",
    ])
    func aBadBodySaysWhatIsWrong(body: String) throws {
        defer { client.remove() }
        #expect(check(body)?.status == 400)
    }

    @Test func theProjectComesFromTheQuery() throws {
        defer { client.remove() }
        let path = "/campaigns/send-self-check-notification"
        #expect(client.post(path, body)?.json["error"] as? String == "Invalid project id")
        #expect(client.post(path + "?project_id=nobody", body)?.status == 400)
        #expect(
            client.post(path + "?project_id={p}", body, authorization: "Token x")?.status == 401)
    }
}
