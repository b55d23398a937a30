import CountersignConsumer
import CountersignCrypto
import Foundation
import Testing

struct WebhookVerifierTests {
    private static let key = [UInt8](repeating: 7, count: 32)
    private static let secret = "whsec_" + Data(key).base64EncodedString()
    private static let other = [UInt8](repeating: 8, count: 24)
    private static let now = Date(timeIntervalSince1970: 1_763_838_000)
    private static let body =
        #"{"type":"events","app":"shop","replay":true,"events":[\#(GatewayScript.event(17, body: #"{"a":1.10}"#))]}"#

    private func signature(
        _ body: String = body, id: String = "msg_1", time: String = "1763838000", key: [UInt8] = key
    ) -> String {
        "v1,"
            + Data(HMACSHA256.authenticate(Array("\(id).\(time).\(body)".utf8), key: key))
            .base64EncodedString()
    }

    private func code(
        _ signature: String?, body: String = body, id: String? = "msg_1", time: String? = "1763838000",
        secrets: [String] = [secret], now: Date = now
    ) throws -> ConsumerError.Code? {
        let headers = ["webhook-id": id, "webhook-timestamp": time, "webhook-signature": signature]
        let verifier = try WebhookVerifier(secrets: secrets)
        do throws(ConsumerError) {
            _ = try verifier.verify(Data(body.utf8), at: now) { headers[$0] ?? nil }
            return nil
        } catch {
            #expect(!"\(error)".contains(String(secrets[0].dropFirst(6))))
            return error.code
        }
    }

    @Test func aGoodDeliveryIsRead() throws {
        let headers = [
            "webhook-id": "msg_1", "webhook-timestamp": "1763838000", "webhook-signature": signature(),
        ]
        let delivery = try WebhookVerifier(secrets: [Self.secret])
            .verify(Data(Self.body.utf8), at: Self.now) { headers[$0] }
        #expect(delivery.id == "msg_1")
        #expect(delivery.signed == Self.now)
        #expect(delivery.type == "events")
        #expect(delivery.app == "shop")
        #expect(delivery.isReplay)
        #expect(delivery.events.map(\.sequence) == [17])
        #expect(delivery.events.first.map { String(decoding: $0.body, as: UTF8.self) } == #"{"a":1.10}"#)
        #expect(delivery.body == Data(Self.body.utf8))
    }

    /// The example of the Standard Webhooks specification has a valid signature, but its body is not a gateway's.
    @Test func theSignatureOfTheSpecificationsExampleIsValid() throws {
        let found = try code(
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", body: #"{"test": 2432232314}"#,
            id: "msg_p5jXN8AQM9LWM0D4loKWxJek", time: "1614265330",
            secrets: ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
            now: Date(timeIntervalSince1970: 1_614_265_330))
        #expect(found == .unexpectedAnswer)
    }

    @Test func theSignatureCoversIdTimeAndBody() throws {
        let good = signature()
        #expect(try code(good) == nil)
        #expect(try code(good, id: "msg_2") == .signatureInvalid)
        #expect(try code(good, time: "1763838001") == .signatureInvalid)
        #expect(try code(good, body: Self.body + " ") == .signatureInvalid)
        #expect(try code(signature(key: Self.other)) == .signatureInvalid)
        #expect(try code(String(good.dropLast(4)) + "AAA=") == .signatureInvalid)
        #expect(try code("v1,") == .signatureInvalid)
        #expect(try code("v2" + good.dropFirst(2)) == .signatureInvalid)
        #expect(try code("") == .signatureInvalid)
    }

    @Test func oneOfSeveralSignaturesAndSecretsIsEnough() throws {
        let old = signature(key: Self.other)
        #expect(try code("v1a,xx " + old + " " + signature()) == nil)
        #expect(
            try code(old, secrets: [Self.secret, "whsec_" + Data(Self.other).base64EncodedString()]) == nil)
        #expect(
            try code(String(repeating: "v1,AAAA ", count: 8) + signature()) == .signatureInvalid,
            "only the first eight signatures are checked")
    }

    @Test(arguments: [(-300, true), (300, true), (-301, false), (301, false)])
    func theTimeMayBeOffByFiveMinutes(offset: Int, isGood: Bool) throws {
        let found = try code(signature(), now: Self.now + TimeInterval(offset))
        #expect(found == (isGood ? nil : .timestampOutOfTolerance))
    }

    @Test func missingAndInvalidFieldsAreReported() throws {
        #expect(try code(signature(), id: nil) == .signatureMissing)
        #expect(try code(signature(), time: nil) == .signatureMissing)
        #expect(try code(nil) == .signatureMissing)
        #expect(try code(signature(), time: "-1") == .signatureMissing)
        #expect(try code(signature(), time: "1e9") == .signatureMissing)
        #expect(try code(signature(id: "msg.1"), id: "msg.1") == .signatureMissing)
        #expect(try code(signature(id: ""), id: "") == .signatureMissing)
    }

    @Test(arguments: [
        [], [""], ["whsec_"], ["whsec_AAAA"], ["MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"], ["whsec_!"],
    ])
    func missingAndInvalidSecretsAreRejected(secrets: [String]) {
        #expect(throws: ConsumerError.self) { try WebhookVerifier(secrets: secrets) }
    }

    @Test(arguments: [0, -1, .nan, .infinity] as [TimeInterval])
    func anInvalidToleranceIsRejected(tolerance: TimeInterval) {
        let error = #expect(throws: ConsumerError.self) {
            try WebhookVerifier(secrets: [Self.secret], tolerance: tolerance)
        }
        #expect(error?.code == .invalidConfiguration)
    }
}
