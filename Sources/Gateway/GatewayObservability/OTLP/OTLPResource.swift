internal import CountersignCore
internal import Foundation

/// The resource attributes of all spans and metrics of a gateway (OpenTelemetry semantic conventions).
package struct OTLPResource: Sendable {
    private let server: URLComponents
    /// Unique for each run of a gateway.
    private let instanceID: String

    package init(url: String, instanceID: String = UUIDv7.make()) {
        server = URLComponents(string: url) ?? URLComponents()
        self.instanceID = instanceID
    }

    var requestAttributes: [(String, OTLPValue)] {
        var attributes: [(String, OTLPValue)] = [("url.scheme", .text(server.scheme ?? "http"))]
        if let host = server.host {
            attributes.append(("server.address", .text(host.trimmingCharacters(in: ["[", "]"]))))
            // Port 0 stands for a port that the system chooses, which is unknown here.
            let port = server.port ?? (server.scheme == "https" ? 443 : 80)
            if port > 0 { attributes.append(("server.port", .integer(port))) }
        }
        return attributes
    }

    /// The body of an export request. `kind` is `Spans` or `Metrics`, as in the names of the JSON members.
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

enum OTLPValue {
    case text(String)
    case integer(Int)

    /// Protocol Buffers' JSON mapping writes 64-bit integers as strings.
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
