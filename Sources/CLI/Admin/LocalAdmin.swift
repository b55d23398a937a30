internal import CountersignCore
internal import CountersignGateway
internal import GatewayAdmin
internal import GatewayHTTP

/// The admin API of a data directory or a database, without a socket, on behalf of the current account.
struct LocalAdmin: AdminClient {
    let location: String
    private let administration: LocalAdministration

    init(dataDirectory: String) throws {
        try self.init(.folder(dataDirectory))
    }

    /// `warn` receives a message if a running gateway has not loaded a change in time.
    init(_ location: StorageLocation, warn: @escaping @Sendable (String) -> Void = { _ in }) throws {
        self.location = location.description
        var backups: String?
        if case .folder(let path) = location { backups = path + "/backups" }
        administration = try LocalAdministration(
            storage: location.open(), backupFolder: backups,
            isLate: {
                warn(
                    "The change is stored, but the running gateway has not loaded it yet; see its log and /readyz."
                )
            })
    }

    private func answer(_ request: AdminRequest) -> GatewayHTTP.HTTPResponse {
        administration.answer(
            request.method, request.encodedPath, query: request.encodedQuery, ifMatch: request.ifMatch,
            body: request.body?.bytes ?? [])
    }

    func send(_ request: AdminRequest) async throws -> AdminAnswer {
        let response = answer(request)
        return try AdminAnswer(
            status: response.status, tag: response.headers.first { $0.name == "ETag" }?.value,
            bytes: response.body)
    }

    func stream(
        _ request: AdminRequest, _ take: @escaping @Sendable ([UInt8]) throws -> Void
    ) async throws -> [(name: String, value: String)] {
        let response = answer(request)
        guard let page = response.stream?.page else {
            _ = try AdminAnswer(
                status: response.status, tag: nil, bytes: response.status == 200 ? [] : response.body)
            try take(response.body)
            return response.headers
        }
        while let bytes = try page() { try take(bytes) }
        return response.headers
    }
}
