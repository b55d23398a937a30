internal import CountersignCore
package import CountersignJSON

/// The client's software as stated in the request; not trustworthy.
package struct ClientInfo: Sendable, Hashable {
    /// The SDK and its version, such as `countersign-swift 1.0.0`; nil when unknown.
    package var sdk: String?
    package var appVersion: String?

    package init(sdk: String? = nil, appVersion: String? = nil) {
        self.sdk = sdk
        self.appVersion = appVersion
    }

    /// Reads `context.library` and `context.app` of a native event.
    package init(context: JSONNode?) {
        let library = context?["library"]
        sdk = Self.joined(library?["name"], library?["version"])
        appVersion = Self.text(context?["app"]?["version"])
    }

    package init(sdk name: JSONNode?, _ version: JSONNode?, app: JSONNode?) {
        sdk = Self.joined(name, version)
        appVersion = Self.text(app)
    }

    /// Reads the first product of a `User-Agent` (RFC 9110, section 10.1.5), and the app's version if
    /// `app/` and a version follow, as Countersign's SDKs send it.
    package init(userAgent: UnsafeBufferPointer<UInt8>?) {
        guard let userAgent else { return }
        let product = userAgent.prefix(while: Self.isVisible)
        guard !product.isEmpty else { return }
        sdk = String(
            decoding: product.prefix(Self.longest).map { $0 == UInt8(ascii: "/") ? 0x20 : $0 }, as: UTF8.self)
        let rest = userAgent.dropFirst(product.count)
        guard rest.starts(with: " app/".utf8) else { return }
        let version = rest.dropFirst(5).prefix(while: Self.isVisible)
        if (1...Self.longest).contains(version.count) {
            appVersion = String(decoding: version, as: UTF8.self)
        }
    }

    private static func isVisible(_ byte: UInt8) -> Bool { byte > 0x20 && byte < 0x7F }

    private static let longest = 64

    private static func joined(_ name: JSONNode?, _ version: JSONNode?) -> String? {
        guard let name = text(name) else { return nil }
        return text(version).map { "\(name) \($0)" } ?? name
    }

    private static func text(_ node: JSONNode?) -> String? {
        guard let utf8 = node?.utf8, !utf8.isEmpty, utf8.count <= longest, !utf8.hasControlCharacter
        else { return nil }
        return String(decoding: utf8, as: UTF8.self)
    }
}
