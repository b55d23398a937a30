internal import CountersignCore
internal import Foundation
internal import GatewayModel

/// What an operation of the admin API takes, needs and answers: requests are checked by it, and the document says it.
struct AdminOperation: Sendable {
    /// What all paths of the API begin with.
    static let prefix = "/admin/api"

    /// Whether a change must name what it was made from (RFC 9110, section 13.1.1).
    enum Match: Sendable {
        case no
        /// With `If-Match` it must be right.
        case optional
        /// 428 without `If-Match`.
        case required
        /// 428 without `If-Match` when there is something to replace; what is not there yet is made without.
        case requiredToReplace
    }

    /// Which others it waits for.
    enum Lane: Sendable {
        /// Settings, keys and enforcement: the content of the control database.
        case common
        /// Events, counts and deliveries, which are stored elsewhere. Settings do not wait for this lane.
        case data
        /// The data of the token service.
        case sessions
        /// A tenth of a second, because of scrypt.
        case password
        /// As long as a copy of all data takes.
        case backup
        /// Until another gateway answers, which is seconds.
        case otherGateways
    }

    /// What is answered when all is well.
    enum Returns: Sendable {
        case json(JSONShape, status: Int = 200)
        /// `items` and `next`.
        case list(JSONShape)
        /// 204.
        case nothing
        /// What is not JSON, with its media types.
        case file([String])
    }

    /// A parameter of the query.
    struct Parameter: Sendable {
        /// What fits into a query.
        enum Value: Sendable {
            /// At most so many bytes, without control characters.
            case text(longest: Int)
            case choice([String])
            case integer(ClosedRange<Int64>)

            static let milliseconds = Value.integer(JSONShape.millisecondRange)

            var shape: JSONShape {
                switch self {
                case .text(let longest): .text(longest: longest)
                case .choice(let words): .choice(words)
                case .integer(let range): .integer(range)
                }
            }
        }

        let name: String
        let value: Value

        init(_ name: String, _ value: Value) {
            self.name = name
            self.value = value
        }
    }

    /// What a body is: an object.
    enum Body: Sendable {
        /// With these members and no others.
        case object([JSONMember])
        /// With any members, which whoever keeps them checks.
        case anyObject

        var shape: JSONShape {
            switch self {
            case .object(let members): .object(members)
            case .anyObject: .map(.any)
            }
        }
    }

    let method: String
    /// Below `/admin/api`.
    let path: String
    /// Who may ask; nil: anybody, also without a credential.
    let role: AdminRole?
    /// One line, without a full stop.
    let summary: String
    /// The parameters that it takes; others are refused.
    let query: [Parameter]
    /// The members that it takes; nil takes no body.
    let body: Body?
    let match: Match
    let returns: Returns
    var lane: Lane
    /// Statuses of refusals that neither its method nor its path makes known.
    let refusals: [Int]

    /// Whether it can be asked again under the same `Idempotency-Key`: what makes something, for whoever has a credential.
    var takesIdempotencyKey: Bool { method == "POST" && role != nil }
}

extension AdminOperation {
    /// Reads the query of a request. Throws 422 for a parameter that is not known, stands twice, is empty or is not as it
    /// must be. Only a cursor may be empty: a loop over pages begins with it.
    func parameters(of query: String?) throws(AdminProblem) -> BytewiseDictionary<String> {
        var found: BytewiseDictionary<String> = [:]
        for pair in (query ?? "").split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = String(parts[0])
            guard let parameter = self.query.first(where: { $0.name == name }) else {
                let known = self.query.map(\.name).joined(separator: ", ")
                throw .invalidParameter(
                    name, known.isEmpty ? "is not known; there are none" : "is not known; there are \(known)")
            }
            let text = parts.count > 1 ? parts[1].replacing("+", with: "%20").removingPercentEncoding : ""
            guard let text, found[name] == nil else {
                throw .invalidParameter(name, "must appear only once, as percent-encoded UTF-8")
            }
            if text.isEmpty, name == "cursor" { continue }
            // As of a variable that a script does not have: it would mean everything.
            guard !text.isEmpty else { throw .invalidParameter(name, "is empty; leave it out") }
            try parameter.check(text)
            found[name] = text
        }
        return found
    }
}

extension AdminOperation.Parameter {
    fileprivate func check(_ text: String) throws(AdminProblem) {
        switch value {
        case .integer(let range):
            guard let number = Int64(text), range.contains(number) else {
                throw .invalidParameter(
                    name, "must be a whole number from \(range.lowerBound) to \(range.upperBound)")
            }
        case .choice(let words):
            guard text.utf8.count <= 64, words.contains(text) else {
                throw .invalidParameter(name, "must be one of \(words.joined(separator: ", "))")
            }
        case .text(let longest):
            guard text.utf8.count <= longest else {
                throw .invalidParameter(name, "may have at most \(longest) bytes")
            }
            if text.hasControlCharacter { throw .invalidParameter(name, "must have no control characters") }
        }
    }
}
