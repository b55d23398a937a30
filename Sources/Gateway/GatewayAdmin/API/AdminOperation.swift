internal import CountersignCore
internal import Foundation
internal import GatewayModel

/// The input, role and result of an operation, for validation and the OpenAPI document.
struct AdminOperation: Sendable {
    static let prefix = "/admin/api"

    /// Whether a change needs `If-Match` (RFC 9110, section 13.1.1).
    enum Match: Sendable {
        case no
        /// The gateway checks `If-Match` if the request has it.
        case optional
        /// A request without `If-Match` gets 428.
        case required
        /// A request without `If-Match` gets 428, unless the resource does not exist yet.
        case requiredToReplace
    }

    /// The class of an operation. Operations of one class run one after the other.
    enum QueueClass: Int, CaseIterable, Sendable {
        /// Settings, keys and enforcement: the content of the control database.
        case common
        /// Events, counts and deliveries, which are stored outside the control database. Settings do not wait for them.
        case data
        /// The data of the token service, and restrictions of users.
        case tokens
        /// Operations with a password hash. scrypt takes a tenth of a second.
        case password
        /// Backups and deletions of a customer's data. They can take as long as a copy of all data.
        case backup
        /// Operations that wait for other gateways, which can take seconds.
        case otherGateways

        /// The maximum number of waiting and running requests.
        var mostWaiting: Int {
            switch self {
            case .common: 128
            case .data, .tokens: 64
            // With 16 requests, the last one waits for two seconds.
            case .password: 16
            case .backup: 4
            // With 4 requests, the last one waits for ten seconds.
            case .otherGateways: 4
            }
        }
    }

    enum Returns: Sendable {
        case json(JSONShape, status: Int = 200)
        case list(JSONShape)
        case nothing
        /// Not JSON. The content has any of these media types.
        case file([String])
    }

    let method: String
    let path: String
    /// The required role; nil needs no credential.
    let role: AdminRole?
    /// One line, without a full stop.
    let summary: String
    let query: [JSONMember]
    /// The shape of the body; nil without a body.
    let body: JSONShape?
    let match: Match
    let returns: Returns
    var queueClass: QueueClass
    /// Error statuses that do not follow from the other properties.
    let rejections: [Int]

    /// Whether the operation accepts an `Idempotency-Key`: every `POST` that needs a role.
    var takesIdempotencyKey: Bool { method == "POST" && role != nil }
}

extension AdminOperation {
    /// Parses the query. Throws 422 for an unknown, repeated, empty or malformed parameter. Only `cursor` may
    /// be empty, so that a loop over pages can start with it.
    func parameters(of query: String?) throws(AdminProblem) -> BytewiseDictionary<String> {
        var found: BytewiseDictionary<String> = [:]
        for pair in (query ?? "").split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = String(parts[0])
            guard let parameter = self.query.first(where: { $0.name == name }) else {
                let known = self.query.map(\.name).joined(separator: ", ")
                throw .invalidParameter(
                    name, known.isEmpty ? "is not known" : "is not one of \(known)")
            }
            let text = parts.count > 1 ? parts[1].replacing("+", with: "%20").removingPercentEncoding : ""
            guard let text, found[name] == nil else {
                throw .invalidParameter(name, "must appear only once, as percent-encoded UTF-8")
            }
            if text.isEmpty, name == "cursor" { continue }
            // An empty filter, as from a script with an unset variable, would otherwise select everything.
            guard !text.isEmpty else { throw .invalidParameter(name, "is empty; leave it out") }
            var value = JSONValue.string(text)
            if case .integer = parameter.type, let number = Int64(text) { value = .integer(number) }
            do throws(ShapeMismatch) {
                try parameter.type.check(value, at: name)
            } catch {
                throw .invalidParameter(name, error.detail)
            }
            found[name] = text
        }
        return found
    }
}
