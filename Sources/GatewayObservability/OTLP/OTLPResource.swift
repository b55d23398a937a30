internal import CountersignCore
internal import Foundation

/// Who exports: what every span and metric of a gateway has in common (OpenTelemetry, semantic conventions).
package struct OTLPResource: Sendable {
    /// What clients reach the gateway by.
    private let server: URLComponents
    /// Tells this run of the gateway from all others.
    private let instanceID: String

    /// `url` is where clients reach the gateway.
    package init(url: String, instanceID: String = UUIDv7.make()) {
        server = URLComponents(string: url) ?? URLComponents()
        self.instanceID = instanceID
    }

    /// What is the same for every request.
    var requestAttributes: [(String, OTLPValue)] {
        var attributes: [(String, OTLPValue)] = [("url.scheme", .text(server.scheme ?? "http"))]
        if let host = server.host {
            attributes.append(("server.address", .text(host.trimmingCharacters(in: ["[", "]"]))))
            // One that the system chooses is not known here.
            let port = server.port ?? (server.scheme == "https" ? 443 : 80)
            if port > 0 { attributes.append(("server.port", .integer(port))) }
        }
        return attributes
    }

    /// A request to a collector: spans or metrics that were gathered under this resource. `kind` is `Spans` or `Metrics`, as in
    /// the names of the members.
    func request(_ kind: String, _ items: [JSONValue]) -> [UInt8] {
        let resource = OTLPValue.attributes([
            ("service.name", .text("countersign")), ("service.version", .text(countersignVersion)),
            ("service.instance.id", .text(instanceID)),
        ])
        let scope: JSONValue = ["name": "countersign", "version": .string(countersignVersion)]
        let gathered: JSONValue = .object([
            "resource": ["attributes": resource],
            "scope\(kind)": [.object(["scope": scope, kind.lowercased(): .array(items)])],
        ])
        return JSONValue.object(["resource\(kind)": [gathered]]).bytes
    }
}

/// The value of an attribute.
enum OTLPValue {
    case text(String)
    case integer(Int)

    /// Protocol Buffers' mapping to JSON writes integers of 64 bits as strings.
    private var json: JSONValue {
        switch self {
        case .text(let text): ["stringValue": .string(text)]
        case .integer(let number): ["intValue": .string(String(number))]
        }
    }

    static func attributes(_ attributes: [(String, OTLPValue)]) -> JSONValue {
        .array(attributes.map { ["key": .string($0.0), "value": $0.1.json] })
    }
}
