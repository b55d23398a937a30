internal import CountersignCore
internal import CountersignTransport
internal import Foundation

struct RefreshRequest {
    let configuration: AuthorizationConfiguration
    /// The header fields of uploads.
    var commonHeaders: [String: String] = [:]
    /// The only origin to which credentials in `commonHeaders`, such as `Authorization` and `Cookie`, are sent.
    var commonOrigin: URL?
    var timeout: TimeInterval = 30

    private static let maximumAnswerBytes = 262_144

    /// Nil if tokens cannot be refreshed.
    static func url(_ configuration: AuthorizationConfiguration) -> URL? {
        guard configuration.refreshPayload?.isEmpty == false,
            let text = configuration.refreshUrl
        else { return nil }
        return URL(server: text)
    }

    /// Nil if tokens cannot be refreshed.
    func make(accessToken: String?, refreshToken: String) -> TransportRequest? {
        guard let url = Self.url(configuration) else { return nil }
        let substitution = Substitution(accessToken: accessToken ?? "", refreshToken: refreshToken)
        let payload = (configuration.refreshPayload ?? [:]).limited().mapValues(substitution.apply)

        var headers = HeaderFields()
        if configuration.refreshHeaders?.isEmpty != true {
            let isSameOrigin = commonOrigin.map { Self.isSameOrigin($0, url) } ?? false
            for (name, value) in commonHeaders where name.lowercased() != "content-type" {
                let isCredential = ["authorization", "cookie", "proxy-authorization"].contains(
                    name.lowercased())
                if isSameOrigin || !isCredential { headers[name] = value }
            }
        }
        headers["Content-Type"] = "application/x-www-form-urlencoded"
        if configuration.refreshHeaders?.isEmpty != true { headers["Accept"] = "application/json" }
        if let given = configuration.refreshHeaders {
            for (name, value) in given { headers[name] = substitution.apply(value) }
        } else if let accessToken {
            headers["Authorization"] = configuration.strategy.headerValue(accessToken)
        }
        let isJSON = headers["Content-Type"]?.lowercased().hasPrefix("application/json") == true
        return TransportRequest(
            url: url, headers: headers.fields,
            body: isJSON ? JSONValue.object(payload).bytes : FormEncoding.encode(payload), timeout: timeout,
            maximumResponseBytes: Self.maximumAnswerBytes)
    }

    private static func isSameOrigin(_ left: URL, _ right: URL) -> Bool {
        func port(_ url: URL) -> Int { url.port ?? (url.scheme?.lowercased() == "https" ? 443 : 80) }
        return left.scheme?.lowercased() == right.scheme?.lowercased()
            && left.host?.lowercased() == right.host?.lowercased() && port(left) == port(right)
    }
}

extension URL {
    /// Nil unless the text is an `http` or `https` URL with a host.
    init?(server text: String) {
        guard let url = URL(string: text.trimmingCharacters(in: .whitespacesAndNewlines)),
            ["http", "https"].contains(url.scheme?.lowercased()), url.host?.isEmpty == false
        else { return nil }
        self = url
    }
}

/// Replaces `{accessToken}` and `{refreshToken}` in one pass, so that such a word in a token is not replaced.
private struct Substitution {
    let accessToken: String
    let refreshToken: String

    func apply(_ value: JSONValue) -> JSONValue {
        switch value {
        case .string(let text): .string(apply(text))
        case .array(let elements): .array(elements.map(apply))
        case .object(let members): .object(members.mapValues(apply))
        default: value
        }
    }

    func apply(_ text: String) -> String {
        var result = ""
        var rest = text[...]
        while let brace = rest.firstIndex(of: "{") {
            result += rest[..<brace]
            rest = rest[brace...]
            if rest.hasPrefix("{accessToken}") {
                result += accessToken
                rest = rest.dropFirst("{accessToken}".count)
            } else if rest.hasPrefix("{refreshToken}") {
                result += refreshToken
                rest = rest.dropFirst("{refreshToken}".count)
            } else {
                result.append("{")
                rest = rest.dropFirst()
            }
        }
        return result + rest
    }
}

/// Form fields sorted by name. A space is written as `%20`, which every server reads.
enum FormEncoding {
    /// Members of nested objects are written as `a[b]=…`, elements of arrays as `a[0]=…`.
    static func encode(_ payload: JSONObject) -> [UInt8] {
        var output: [UInt8] = []
        for (name, value) in payload.sorted(by: { $0.key < $1.key }) { write(value, as: name, to: &output) }
        return output
    }

    private static func write(_ value: JSONValue, as name: String, to output: inout [UInt8]) {
        switch value {
        case .object(let members):
            for (key, member) in members.sorted(by: { $0.key < $1.key }) {
                write(member, as: "\(name)[\(key)]", to: &output)
            }
        case .array(let elements):
            for (index, element) in elements.enumerated() {
                write(element, as: "\(name)[\(index)]", to: &output)
            }
        default:
            if !output.isEmpty { output.append(UInt8(ascii: "&")) }
            escape(name, to: &output)
            output.append(UInt8(ascii: "="))
            switch value {
            case .string(let text): escape(text, to: &output)
            case .null: break
            default: escape(String(decoding: value.bytes, as: UTF8.self), to: &output)
            }
        }
    }

    private static func escape(_ text: String, to output: inout [UInt8]) {
        let hex = Array("0123456789ABCDEF".utf8)
        for byte in text.utf8 {
            if byte.isASCIIAlphanumeric(or: "-._~") {
                output.append(byte)
            } else {
                output.append(contentsOf: [UInt8(ascii: "%"), hex[Int(byte >> 4)], hex[Int(byte & 15)]])
            }
        }
    }
}
