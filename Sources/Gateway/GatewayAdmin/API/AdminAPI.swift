internal import CountersignCore
internal import CountersignCrypto
internal import Foundation
package import GatewayHTTP
internal import GatewayModel
internal import GatewayStorage

/// The admin API: authorizes requests and handles them outside the server's thread. Each class of operations
/// has a serial queue, so a change of a setting never waits for a password hash or a backup.
package final class AdminAPI: Sendable {
    private let directory: AppDirectory
    private let publicURL: String?
    private let isSecure: Bool
    private let routes: [AdminRoute]
    private let now: @Sendable () -> Date
    private let changed: @Sendable () -> Void
    /// The queue of each class, at its raw value.
    private let queues = AdminOperation.QueueClass.allCases.map { DispatchQueue(label: "admin \($0)") }
    /// Limits the waiting requests, for each class separately and for each client address.
    private let permits = AdminOperation.QueueClass.allCases.map { AddressPermits(most: $0.mostWaiting) }
    private let idempotencyKeys: IdempotencyKeys

    init(
        directory: AppDirectory, publicURL: String?, isSecure: Bool, routes: [AdminRoute],
        cluster: (any Cluster)?, now: @escaping @Sendable () -> Date, changed: @escaping @Sendable () -> Void
    ) {
        self.directory = directory
        self.publicURL = publicURL
        self.isSecure = isSecure
        self.routes = routes + [AdminDocument.route(describing: routes.map(\.operation))]
        idempotencyKeys = IdempotencyKeys(cluster: cluster)
        self.now = now
        self.changed = changed
    }

    var endpoints: [Endpoint] {
        routes.map { route in
            Endpoint(method: route.operation.method, path: AdminOperation.prefix + route.operation.path) {
                [self] request, parameters in answer(AdminRequest(request, parameters), route)
            }
        }
    }

    package static let credentialHeaders: [StaticString] = ["x-csrf-token"]

    package static let rejection = Router.Rejection(prefixes: [AdminOperation.prefix]) {
        status, code, reason, request in
        let reason =
            status == 404 ? "there is no such endpoint; see \(AdminOperation.prefix)/openapi.json" : reason
        return AdminProblem(status, code, reason).response(requestID: request.id)
    }

    func close() {
        for queue in queues { queue.sync {} }
    }

    private func answer(_ request: AdminRequest, _ route: AdminRoute) -> HTTPOutcome {
        let permits = permits[route.operation.queueClass.rawValue]
        guard permits.take(request.clientAddress) else {
            var problem = AdminProblem(503, "busy", "too many requests are waiting; try again")
            problem.retryAfterSeconds = 1
            return .answer(problem.response(requestID: request.id))
        }
        return .waiting({ [self] done in
            queues[route.operation.queueClass.rawValue].async { [self] in
                let response = respond(request, route)
                permits.release(request.clientAddress)
                done(response)
            }
        }) { $0 }
    }

    private func respond(_ request: AdminRequest, _ route: AdminRoute) -> HTTPResponse {
        Self.respond(request) {
            let milliseconds = Milliseconds(now()).count
            let identity = try authorize(request, route, at: milliseconds)
            return try idempotencyKeys.response(
                to: request, route.operation, of: identity, at: milliseconds
            ) {
                let response = try route.respond(
                    request, identity, directory, at: milliseconds,
                    isStillAllowed: { [self] in isStillAllowed(request, route) })
                // Sessions need no reload, because the gateway reads them at each request.
                if !request.isSafe, !route.operation.path.hasPrefix("/session") { changed() }
                return response
            }
        }
    }

    private func isStillAllowed(_ request: AdminRequest, _ route: AdminRoute) -> Bool {
        do {
            _ = try authorize(request, route, at: Milliseconds(now()).count)
            return true
        } catch {
            // A read error does not mean that the access was revoked.
            return !(error is AdminProblem)
        }
    }

    static func respond(_ request: AdminRequest, _ body: () throws -> HTTPResponse) -> HTTPResponse {
        do {
            return try body()
        } catch let problem as AdminProblem {
            return problem.response(requestID: request.id)
        } catch let error as GatewayError {
            return AdminProblem(error).response(requestID: request.id)
        } catch {
            return AdminProblem(503, "storage", "\(error)").response(requestID: request.id)
        }
    }

    private func authorize(
        _ request: AdminRequest, _ route: AdminRoute, at milliseconds: Int64
    ) throws -> AdminIdentity {
        guard let needed = route.operation.role else {
            // A page of another origin must not sign a browser in.
            if !request.isSafe, request.isOwnOrigin(publicURL: publicURL) == false { throw Self.foreignPage }
            return AdminIdentity(name: "anonymous", role: .viewer)
        }
        let identity = try authenticate(request, at: milliseconds)
        guard identity.role >= needed else {
            throw AdminProblem(403, "forbidden", "this needs the role \(needed.rawValue)")
        }
        // The routes below `/session` manage the user's own session, password and second factor.
        if identity.mustEnrol, !route.operation.path.hasPrefix("/session") {
            throw AdminProblem(
                403, "second_factor_setup_required", "set up a second factor first: an owner requires it")
        }
        if let expected = identity.csrfToken, !request.isSafe {
            guard request.isOwnOrigin(publicURL: publicURL) == true else { throw Self.foreignPage }
            guard let given = request.csrfToken, Scrypt.isEqual(Array(given.utf8), Array(expected.utf8))
            else {
                throw AdminProblem(403, "csrf", "send the session's csrf value in X-CSRF-Token")
            }
        }
        return identity
    }

    private func authenticate(_ request: AdminRequest, at milliseconds: Int64) throws -> AdminIdentity {
        if let text = request.bearerToken {
            guard let token = try directory.apiTokens.token(text, at: milliseconds) else {
                throw AdminProblem(401, "unauthenticated", "there is no such API token, or it has expired")
            }
            guard let role = token.role else {
                throw AdminProblem(403, "forbidden", "this token can only read the events of one app")
            }
            return AdminIdentity(name: "token:\(token.name)#\(token.id)", role: role)
        }
        guard let cookie = request.sessionToken(isSecure: isSecure),
            let session = try directory.admins.signInSession(cookie, at: milliseconds)
        else { throw AdminProblem(401, "unauthenticated", "sign in, or send an API token as Bearer") }
        return AdminIdentity(
            name: session.user.name, role: session.user.role, session: (cookie, session.expires),
            userCreatedMilliseconds: session.user.createdMilliseconds, mustEnrol: session.mustEnrol)
    }

    private static let foreignPage = AdminProblem(
        403, "csrf", "changes must come from the gateway's own page: Origin is missing or names another page")
}
