internal import CountersignCore
internal import GatewayModel
internal import GatewayStorage

struct ClusterRoutes: Sendable {
    /// Nil for a single gateway with its own data directory.
    let cluster: (any Cluster)?

    var all: [AdminRoute] {
        [
            AdminRoute(
                "GET", "/cluster", .viewer,
                "List the gateways that share the database, and the state of the database",
                rejections: [404], .json(Self.status.shape)
            ) { call in
                guard let cluster else {
                    throw AdminProblem.notFound("the gateway keeps everything in a data directory of its own")
                }
                return call.answer(Self.status.json(try cluster.status()))
            }
        ]
    }

    private static let traffic = AnswerShape<GatewayTraffic>(
        .init("accepted", \.accepted), .init("rejected", \.rejected), .init("events", \.events))

    private static let gateway = AnswerShape<ClusterStatus.Gateway>(
        named: "ClusterGateway", .init("id", \.identity.id), .init("name", \.identity.name),
        .init("url", \.url), .init("admin_url", \.adminURL),
        .init("version", \.identity.version),
        .time("started_ms", \.identity.startedMilliseconds), .time("seen_ms", \.seenMilliseconds),
        .init("live", \.isLive),
        .init("clock_offset_ms", .integer(Int64.min...Int64.max), \.clockOffsetMilliseconds),
        .init("generation", \.generation), .init("reader_lag_ms", \.readerLagMilliseconds),
        .init("duties", \.dutyNames), .object("last_minute", traffic) { $0.lastMinute })

    private static let partition = AnswerShape<ClusterStatus.Partition>(
        .init("name", \.name), .time("day_ms", \.dayMilliseconds), .init("rows", \.rows),
        .init("bytes", \.bytes))

    private static let warning = AnswerShape<ClusterStatus.Warning>(
        .init("code", \.code), .init("text", \.text))

    private static let status = AnswerShape<ClusterStatus>(
        named: "Cluster", .list("gateways", gateway) { $0.gateways }, .init("generation", \.generation),
        .time("now_ms", \.nowMilliseconds), .init("schema_version", \.schemaVersion),
        .init("server_version", \.serverVersion), .init("reader_lag_ms", \.readerLagMilliseconds),
        .list("partitions", partition) { $0.partitions }, .list("warnings", warning) { $0.warnings })
}
