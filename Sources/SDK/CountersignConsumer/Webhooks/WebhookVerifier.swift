public import Foundation

/// Verifies the signatures of a gateway's webhook deliveries (Standard Webhooks, version 1.0.0).
///
/// ```swift
/// let verifier = try WebhookVerifier(secrets: [secret])
/// let delivery = try verifier.verify(body) { request.headers[$0] }
/// ```
public struct WebhookVerifier: Sendable {
    /// The number of signatures that are checked. A gateway sends two at most.
    private static let mostSignatures = 8
    private static let longestField = 4_096

    private let keys: [[UInt8]]
    private let tolerance: TimeInterval

    /// Creates a verifier.
    ///
    /// - Parameters:
    ///   - secrets: 1 to 8 secrets as the gateway shows them, `whsec_` and base64 of 24 to 64 bytes. Pass the old and
    ///     the new one during rotation.
    ///   - tolerance: Maximum difference between the time of signing and `now`, in seconds.
    /// - Throws: `invalid_configuration`.
    public init(secrets: [String], tolerance: TimeInterval = 300) throws(ConsumerError) {
        guard 1...8 ~= secrets.count else { throw Self.invalid("secrets must have 1 to 8 elements") }
        guard tolerance.isFinite, tolerance > 0 else {
            throw Self.invalid("tolerance must be above 0 seconds")
        }
        var keys: [[UInt8]] = []
        for secret in secrets {
            guard secret.hasPrefix("whsec_"), let key = Data(base64Encoded: String(secret.dropFirst(6))),
                24...64 ~= key.count
            else { throw Self.invalid("a secret must be whsec_ followed by the base64 of 24 to 64 bytes") }
            keys.append(Array(key))
        }
        self.keys = keys
        self.tolerance = tolerance
    }

    private static func invalid(_ detail: String) -> ConsumerError {
        ConsumerError(.invalidConfiguration, detail)
    }

    /// Verifies the signature, and decodes the body only if it is valid.
    ///
    /// - Parameters:
    ///   - body: The request's body as received. Re-encoded text has a different signature.
    ///   - now: The current time.
    ///   - header: Returns the value of a header field by its lower-case name, such as `webhook-id`; nil if missing.
    /// - Returns: The delivery. It may be delivered again, see ``WebhookDelivery/id``.
    /// - Throws: `signature_missing` if a header field is missing or malformed, `timestamp_out_of_tolerance`,
    ///   `signature_invalid`, or `unexpected_answer` if the signed body is not a gateway's document.
    public func verify(
        _ body: Data, at now: Date = Date(), header: (_ name: String) -> String?
    ) throws(ConsumerError) -> WebhookDelivery {
        // The signature covers `id.timestamp.body`. A dot in the id would make the fields ambiguous.
        guard let id = header("webhook-id"), 1...256 ~= id.utf8.count,
            id.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: ".") }),
            let time = header("webhook-timestamp"), 1...15 ~= time.utf8.count,
            time.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let seconds = TimeInterval(time),
            let signatures = header("webhook-signature"), signatures.utf8.count <= Self.longestField
        else {
            throw ConsumerError(
                .signatureMissing,
                "webhook-id, webhook-timestamp or webhook-signature is missing or malformed"
            )
        }
        guard abs(now.timeIntervalSince1970 - seconds) <= tolerance else {
            throw ConsumerError(
                .timestampOutOfTolerance,
                "webhook-timestamp differs by more than \(Int(tolerance)) seconds from this machine's clock"
            )
        }
        guard isSigned(Array("\(id).\(time).".utf8) + body, signatures) else {
            throw ConsumerError(
                .signatureInvalid,
                "no signature matches; check the secrets, and pass the body's bytes as received")
        }
        guard let document = EventDocument(Array(body)), let type = document.members.type else {
            throw ConsumerError(.unexpectedAnswer, "the body is signed, but is not a gateway's document")
        }
        return WebhookDelivery(
            id: id, signed: Date(timeIntervalSince1970: seconds), type: type, app: document.members.app,
            events: document.events, isReplay: document.members.replay ?? false, body: body)
    }

    private func isSigned(_ bytes: [UInt8], _ signatures: String) -> Bool {
        for signature in signatures.split(separator: " ").prefix(Self.mostSignatures)
        where signature.hasPrefix("v1,") {
            guard let code = Data(base64Encoded: String(signature.dropFirst(3))) else { continue }
            for key in keys where WebhookAuthenticationCode.isValid(Array(code), of: bytes, key: key) {
                return true
            }
        }
        return false
    }
}
