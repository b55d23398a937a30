internal import CountersignCore
internal import Foundation

/// One block of a PEM text (RFC 7468).
struct PEMBlock {
    let label: String
    let bytes: [UInt8]

    /// Ignores white space in and around the lines, which dashboards and e-mail programs change.
    static func parse(_ text: String) throws(JOSEError) -> [PEMBlock] {
        guard text.utf8.count <= 65_536 else {
            throw JOSEError(.unreadableKey, "longer than 64 KiB; pass one key")
        }
        var blocks: [PEMBlock] = []
        var rest = Substring(text)
        while let begin = rest.range(of: "-----BEGIN ") {
            rest = rest[begin.upperBound...]
            guard let close = rest.range(of: "-----") else {
                throw JOSEError(.unreadableKey, "the BEGIN line is incomplete")
            }
            let label = String(rest[..<close.lowerBound])
            rest = rest[close.upperBound...]
            // A private key is recognized even if it is truncated or encrypted.
            let isPrivate = label.contains("PRIVATE KEY")
            let end = rest.range(of: "-----END \(label)-----")
            guard end != nil || isPrivate else {
                throw JOSEError(.unreadableKey, "the END line is missing: the key was truncated")
            }
            let bytes = end.flatMap { body(of: rest[..<$0.lowerBound]) }
            guard bytes != nil || isPrivate else {
                throw JOSEError(.unreadableKey, "the text between BEGIN and END is not base64")
            }
            blocks.append(PEMBlock(label: label, bytes: bytes ?? []))
            // Without an end line, the rest of the text cannot be parsed.
            guard let end else { break }
            rest = rest[end.upperBound...]
        }
        return blocks
    }

    private static func body(of text: Substring) -> [UInt8]? {
        let characters = text.utf8.filter {
            $0 != 0x20 && $0 != 0x09 && $0 != 0x0A && $0 != 0x0D
        }
        guard let data = Data(base64Encoded: Data(characters)) else { return nil }
        return data.isEmpty ? nil : [UInt8](data)
    }

    static func write(_ label: String, _ bytes: [UInt8]) -> String {
        let body = Data(bytes).base64EncodedString(options: [.lineLength64Characters, .endLineWithLineFeed])
        return "-----BEGIN \(label)-----\n\(body)\n-----END \(label)-----\n"
    }
}
