internal import CountersignCore
internal import CountersignJOSE
internal import CountersignJSON
internal import Foundation
internal import GatewayHTTP
internal import GatewayModel

/// The credentials that an endpoint of the Bloomreach dialect accepts.
enum BloomreachAccess {
    case key
    /// The App Inbox: a customer token, the API key or either, depending on the project.
    case inbox
    /// The API key or a customer token, because existing clients differ in the credential they send.
    case either
}

/// A request with its project and the verified `Authorization` header.
struct BloomreachCall {
    let path: RequestPath
    let request: HTTPRequest
    let app: AdmittedApp
    private let user: Credential
    /// The customer token that authorized the request; nil for an API key.
    private let token: CustomerToken?

    private struct CustomerToken {
        let report: VerificationReport
        let identifiers: [CustomerIdentifier]
        let issuedAt: Double?
    }

    init(
        _ request: HTTPRequest, project: some StringProtocol, access: BloomreachAccess, path: RequestPath
    ) throws(HTTPResponse) {
        self.path = path
        self.request = request
        guard let app = path.apps.app(projectToken: project) else {
            throw BloomreachAnswer.failure(400, "Invalid project id", request)
        }
        self.app = app
        request.context.appID = app.id
        let credentials = BloomreachCredentials(request)
        user = credentials.user
        let mode = app.project.settings.customerTokens
        switch credentials.opening {
        case .apiKey(let key):
            if case .inbox = access, mode == .required {
                throw BloomreachAnswer.failure(
                    401, "this project's App Inbox needs a customer token: Authorization: Bearer", request)
            }
            guard path.apps.app(writeKey: key)?.id == app.id else {
                throw BloomreachAnswer.failure(401, "Access key not found", request)
            }
            token = nil
        case .customerToken(let text):
            if case .key = access {
                throw BloomreachAnswer.failure(
                    401, "this endpoint takes the API key: Authorization: Token", request)
            }
            guard mode != .off else {
                throw BloomreachAnswer.failure(401, "customer tokens are off for this project", request)
            }
            token = try Self.verify(text, app: app, path: path, request: request)
        case .nothing:
            throw BloomreachAnswer.failure(
                401, "Access key not provided; send Authorization: Token and the project's API key", request)
        }
    }

    private static func verify(
        _ token: String, app: AdmittedApp, path: RequestPath, request: HTTPRequest
    ) throws(HTTPResponse) -> CustomerToken {
        if let rejection = path.overLimit(of: app, request) {
            throw BloomreachAnswer.overLimit(rejection, request)
        }
        let (report, identifiers, issuedAt) = app.customerTokens.verify(
            token, at: path.now().timeIntervalSince1970)
        guard report.isAccepted else { throw rejection(report, app: app, path: path, request: request) }
        request.context.note(.accepted(report, from: .device), app: app)
        return CustomerToken(
            report: report,
            identifiers: identifiers.map { CustomerIdentifier(name: $0.name, value: $0.value) },
            issuedAt: issuedAt)
    }

    private static func rejection(
        _ report: VerificationReport, app: AdmittedApp, path: RequestPath, request: HTTPRequest
    ) -> HTTPResponse {
        request.context.note(.rejected(report), app: app)
        let error = AuthErrorBody(
            report: report, enforcement: .required, requestID: request.id,
            serverMilliseconds: Milliseconds(path.now()).count)
        return BloomreachAnswer.rejection(error, request)
    }

    func body<Value>(
        _ read: (JSONNode) throws(HTTPResponse) -> Value
    ) throws(HTTPResponse) -> Value {
        try value(
            path.parsers.read(request) { root in
                object(root) { () throws(HTTPResponse) in try read(root) }
            })
    }

    /// Parses the body as the JSON object of one event, with unpaired surrogates and unusable times replaced.
    func eventBody<Value>(
        _ read: (JSONNode, EventFaults) throws(HTTPResponse) -> Value
    ) throws(HTTPResponse) -> Value {
        try value(
            path.parsers.readEvents(request, isolate: { $0.clearTimes(["timestamp", "age"], at: $0.root) }) {
                root, faults in
                object(root) { () throws(HTTPResponse) in try read(root, faults) }
            })
    }

    private func object<Value>(
        _ root: JSONNode, _ read: () throws(HTTPResponse) -> Value
    ) -> Result<Value, HTTPResponse> {
        Result { () throws(HTTPResponse) in
            guard root.kind == .object else { throw reject("the body must be a JSON object") }
            return try read()
        }
    }

    private func value<Value>(
        _ parsed: Result<Result<Value, HTTPResponse>, InvalidJSON>
    ) throws(HTTPResponse) -> Value {
        switch parsed {
        case .success(let value): return try value.get()
        case .failure(let invalid): throw reject(invalid.reason)
        }
    }

    func reject(_ message: String) -> HTTPResponse { BloomreachAnswer.failure(400, message, request) }

    /// The ids in `customer_ids`, or in the given member; empty without it.
    func identifiers(
        _ root: JSONNode, _ member: StaticString = "customer_ids"
    ) throws(HTTPResponse) -> [CustomerIdentifier] {
        guard let node = root[member], !node.isNull else { return [] }
        do {
            return try CustomerIdentifier.all(in: node, named: member)
        } catch {
            throw reject(error.reason)
        }
    }

    func requiredIdentifiers(_ root: JSONNode) throws(HTTPResponse) -> [CustomerIdentifier] {
        let identifiers = try identifiers(root)
        guard !identifiers.isEmpty else { throw reject("At least one id should be specified.") }
        return identifiers
    }

    /// Determines the ids for which the request may act.
    ///
    /// With an API key: the ids as sent, after the admission that all dialects share. With a customer token: the ids
    /// that are also in the token. Another id leads to a rejection. A cookie is ignored if the token has no cookie.
    func admit(_ identifiers: [CustomerIdentifier]) throws(HTTPResponse) -> BloomreachCaller {
        guard let token else { return try admitByKey(identifiers) }
        func rejected(_ code: AuthErrorCode, _ detail: String) -> HTTPResponse {
            var report = token.report
            report.add(code, detail)
            return Self.rejection(report, app: app, path: path, request: request)
        }
        if let restrictions = app.restrictions {
            let instant = path.now().timeIntervalSince1970
            let users = token.identifiers.filter { !$0.isCookie }.map(\.value)
            if users.contains(where: { restrictions.revokes($0, issuedAt: token.issuedAt, at: instant) }) {
                throw rejected(.userRevoked, "an operator has revoked the tokens that the user had")
            }
            let rejection = path.restricted(restrictions, users: users, app: app, request, at: instant)
            if let rejection { throw BloomreachAnswer.overLimit(rejection, request) }
        }
        let namesCookie = token.identifiers.contains { $0.name == CustomerIdentifier.cookieName }
        var covered: [CustomerIdentifier] = []
        for identifier in identifiers {
            if token.identifiers.contains(identifier) {
                covered.append(identifier)
            } else if identifier.name != CustomerIdentifier.cookieName || namesCookie {
                throw rejected(.subjectMismatch, "an id of the request is not in the customer token")
            }
        }
        guard identifiers.isEmpty || !covered.isEmpty else {
            throw rejected(.subjectMismatch, "the customer token names no id of the request")
        }
        return BloomreachCaller(identifiers: covered, warning: nil, authenticated: covered)
    }

    private func admitByKey(
        _ identifiers: [CustomerIdentifier]
    ) throws(HTTPResponse) -> BloomreachCaller {
        let hard = identifiers.first(where: \.isHard)
        var users = DistinctIDs()
        for identifier in hard.map({ [$0] }) ?? identifiers
        where identifier.name != CustomerIdentifier.cookieName {
            users.insert(identifier.value)
        }
        let admission = AdmissionRequest(credential: user, userIDs: users.ids)
        switch path.admitted(admission, app: app, request: request) {
        case .failed(let rejection):
            throw BloomreachAnswer.overLimit(rejection, request)
        case .rejected(let error):
            throw BloomreachAnswer.rejection(error, request)
        case .accepted(_, let warning):
            // Not every accepted request is authenticated. Admission accepts invalid tokens while tokens are optional,
            // and for users outside the ramp. While enforcement is disabled, admission verifies no token.
            let isProven =
                switch request.context.verdict {
                case .accepted: true
                case .notJudged:
                    hard != nil && user.token != nil
                        && app.report(on: admission, at: path.now().timeIntervalSince1970).isAccepted
                case .anonymous, .acceptedWithWarning, .rejected, nil: false
                }
            return BloomreachCaller(
                identifiers: identifiers, warning: warning,
                authenticated: isProven ? hard.map { [$0] } ?? [] : [],
                joinsByCookieOnly: hard != nil && app.enforcement == .required)
        }
    }
}

struct BloomreachCaller {
    let identifiers: [CustomerIdentifier]
    let warning: AuthErrorBody?
    /// The ids authenticated by a token, regardless of the app's enforcement.
    let authenticated: [CustomerIdentifier]
    /// Set if tokens are required and the request has a hard id (`registered`). The token then covers only that
    /// id, so any other id except the cookie neither opens nor merges a customer. Such an id is added to the
    /// customer of the hard id unless another customer has it. The cookie identifies the device.
    var joinsByCookieOnly = false

    /// The ids by which the request may read. Customers with a hard id require a token.
    var readable: [CustomerIdentifier] {
        identifiers.filter { $0.isHard ? authenticated.contains($0) : !joinsByCookieOnly || $0.isCookie }
    }

    func change(atMilliseconds milliseconds: Int64) -> CustomerChange {
        CustomerChange(
            identifiers: identifiers, joinsByCookieOnly: joinsByCookieOnly, atMilliseconds: milliseconds)
    }
}

extension AdmittedApp {
    fileprivate var customerTokens: CustomerTokenVerifier {
        derived { CustomerTokenVerifier(keys: $0.project.customerTokenKeys, ring: $0.verifier) }
    }
}
