internal import CountersignGateway
internal import GatewayHTTP
internal import GatewayModel

/// A gateway and the development backend of its app, both listening on loopback addresses only.
struct DevSession: Sendable {
    let folder: DevFolder
    let gateway: Gateway
    let gatewayURL: String
    let backendURL: String
    let dashboardURL: String
    let backend: DevBackend
    private let server: HTTPServer

    /// Starts the gateway and the backend. A port of 0 selects a free one.
    init(
        path: String, port: UInt16, backendPort: UInt16, tokenSeconds: Int, logFormat: LogFormat
    ) async throws {
        folder = try await DevFolder(path: path)
        var configuration = GatewayConfiguration(dataDirectory: path)
        configuration.port = port
        // The command prints rejections as live results, so the log has errors only.
        configuration.logLevel = .error
        configuration.logFormat = logFormat
        gateway = try Gateway(configuration: configuration)
        try gateway.start()
        gatewayURL = configuration.url(port: gateway.port)
        backend = DevBackend(
            key: folder.key, tokenSeconds: tokenSeconds, gatewayURL: gatewayURL, writeKey: folder.writeKey,
            dashboardURL: gatewayURL + "/admin/", openSignInSession: folder.openSignInSession)
        do {
            let router = Router(backend.endpoints)
            server = HTTPServer(limits: GatewayLimits(), observer: ObserverGroup(members: [])) {
                router.route($0)
            }
            let bound = try server.start(host: "127.0.0.1", port: backendPort)
            backendURL = "http://127.0.0.1:\(bound)"
            dashboardURL = backendURL + "/dashboard/" + backend.dashboardSecret
            do {
                try await folder.allow([backendURL, "http://localhost:\(bound)"])
            } catch {
                server.stop(graceSeconds: 0)
                throw error
            }
        } catch {
            gateway.stop()
            throw error
        }
    }

    func stop() {
        server.stop(graceSeconds: 1)
        gateway.stop()
    }
}
