internal import CountersignCore
internal import Foundation
internal import GatewayModel

/// A setting of the gateway. Flags, environment variables, configuration keys and settings.md derive from it.
struct Setting: Sendable {
    struct Problem: Error {
        let text: String
    }

    /// The key in the configuration file. Unless `isSecret`, also the flag without dashes, as in `log-level`.
    let name: String
    let value: Flag.Value
    let defaultValue: String?
    /// Whether the value is a secret, which must not be printed or given as an argument. The flag and a second
    /// environment variable take the path of a file with the secret.
    let isSecret: Bool
    let help: String
    let show: @Sendable (String) -> String
    let apply: @Sendable (inout GatewayConfiguration, String) throws(Problem) -> Void

    init(
        _ name: String, _ value: Flag.Value, default defaultValue: String? = nil, isSecret: Bool = false,
        help: String, show: @escaping @Sendable (String) -> String = { $0 },
        apply: @escaping @Sendable (inout GatewayConfiguration, String) throws(Problem) -> Void
    ) {
        self.name = name
        self.value = value
        self.defaultValue = defaultValue
        self.isSecret = isSecret
        self.help = help
        self.show = show
        self.apply = apply
    }

    /// A number, duration or size with the configuration's default.
    init(
        _ name: String, _ value: Flag.Value,
        _ path: any WritableKeyPath<GatewayConfiguration, Int> & Sendable, help: String
    ) {
        let standard = GatewayConfiguration(dataDirectory: "")[keyPath: path]
        self.init(name, value, default: String(standard), help: help) {
            $0[keyPath: path] = Int($1) ?? standard
        }
    }

    /// Checks an origin: scheme, host and optional port. Errors omit the text, which may hold a password.
    static func origin(_ text: String) throws(Problem) -> String {
        guard let url = URLComponents(string: text), url.scheme == "https" || url.scheme == "http",
            url.host?.isEmpty == false, url.path.isEmpty, url.query == nil, url.fragment == nil,
            url.user == nil
        else {
            throw Problem(text: "needs a URL such as https://collect.example, without a user or a path")
        }
        guard text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw Problem(text: "needs a host in ASCII: write other letters as xn-- (punycode)")
        }
        return text
    }

    /// Checks an HTTP URL and removes a slash at its end. Errors omit the text, which may hold a password.
    static func endpoint(_ text: String) throws(Problem) -> String {
        guard let url = URLComponents(string: text), url.scheme == "https" || url.scheme == "http",
            url.host?.isEmpty == false, url.query == nil, url.fragment == nil, url.user == nil
        else {
            throw Problem(text: "needs a URL such as http://127.0.0.1:4318, without a user or a query")
        }
        return text.hasSuffix("/") ? String(text.dropLast()) : text
    }

    /// Parses header fields, one per line (RFC 9110, section 5). Errors omit the text, which may hold a token.
    static func headerFields(_ text: String) throws(Problem) -> [(name: String, value: String)] {
        var fields: [(name: String, value: String)] = []
        for line in text.split(whereSeparator: \.isNewline) {
            let parts = line.split(separator: ":", maxSplits: 1)
            let value = parts.last?.trimmingCharacters(in: .whitespaces) ?? ""
            guard parts.count == 2, parts[0].utf8.allSatisfy({ $0.isASCIIAlphanumeric(or: "-_.") }),
                !value.isEmpty, value.utf8.allSatisfy({ (0x20..<0x7F).contains($0) })
            else {
                throw Problem(text: "needs lines such as Authorization: Bearer and a token, in ASCII")
            }
            fields.append((String(parts[0]), value))
        }
        return fields
    }

    /// Parses a database's address. Errors omit the text, which may hold a password.
    static func database(_ text: String, passwordFile: String? = nil) throws(Problem) -> DatabaseAddress {
        guard let address = DatabaseAddress(text, passwordFile: passwordFile) else {
            throw Problem(
                text: "needs postgresql://user@host/database, or keywords such as host=db dbname=countersign")
        }
        return address
    }

    static func address(_ text: String) throws(Problem) -> String {
        guard NetworkAddress(text) != nil else {
            throw Problem(
                text: "needs an IPv4 or IPv6 address such as 127.0.0.1, 0.0.0.0 or ::1, not '\(text)'")
        }
        return text
    }

    static func ranges(_ text: String) throws(Problem) -> [AddressRange] {
        var ranges: [AddressRange] = []
        for part in text.split(separator: ",") {
            guard let range = AddressRange(String(part.drop { $0 == " " })) else {
                throw Problem(
                    text: "needs addresses such as 10.0.0.0/8,192.0.2.7 separated by commas, not '\(part)'")
            }
            ranges.append(range)
        }
        return ranges
    }

    var environment: String { "COUNTERSIGN_" + name.uppercased().replacing("-", with: "_") }

    /// The name of the setting for a file with the secret.
    var fileName: String { name + "-file" }

    /// The environment variable for the path of a file with the secret.
    var fileEnvironment: String { environment + "_FILE" }

    var flag: Flag {
        isSecret
            ? Flag(fileName, .path("PATH"), environment: fileEnvironment, help: help + ", in this file")
            : Flag(
                name, value, default: defaultValue, environment: environment, mayBeEmpty: true, help: help)
    }
}
