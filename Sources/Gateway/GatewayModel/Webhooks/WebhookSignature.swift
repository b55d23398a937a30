internal import CountersignCore
internal import CountersignCrypto
internal import Foundation

/// Signatures of webhook deliveries, according to the Standard Webhooks specification, version 1.0.0.
package enum WebhookSignature {
    package static let prefix = "whsec_"

    /// Decodes a secret; nil when it is not `whsec_` and the base64 of 24 to 64 bytes.
    package static func key(_ secret: String) -> [UInt8]? {
        guard secret.hasPrefix(prefix), let key = Data(base64Encoded: String(secret.dropFirst(prefix.count))),
            (24...64).contains(key.count)
        else { return nil }
        return Array(key)
    }

    /// The header fields of a delivery. `id` stays the same on redelivery; `timestamp` is in seconds since
    /// 1970. Each of `keys` adds a signature: there are two during a key rotation.
    package static func headers(
        id: String, timestamp: Int64, body: [UInt8], keys: [[UInt8]]
    ) -> [(name: String, value: String)] {
        let signed = Array("\(id).\(timestamp).".utf8) + body
        let signatures = keys.map { key in
            "v1," + Data(HMACSHA256.authenticate(signed, key: key)).base64EncodedString()
        }
        return [
            ("webhook-id", id), ("webhook-timestamp", String(timestamp)),
            ("webhook-signature", signatures.joined(separator: " ")),
        ]
    }
}
