/// What an app had to do lately, for the list of apps.
struct AppActivity: Sendable {
    /// Milliseconds since 1970 of the minute of its last request; nil when there was none in 24 hours.
    var lastMilliseconds: Int64?
    /// Requests of the last 24 hours, and those of them that were refused or let pass with a warning.
    var requests = 0
    var rejected = 0
    var warned = 0
}

extension AppActivity {
    /// - Throws: `storage`.
    init(of appID: String, in dataDirectory: String, at milliseconds: Int64) throws(GatewayError) {
        guard AnalyticsReader.isThere(in: dataDirectory) else { return }
        let query = AnalyticsQuery(
            appID: appID, fromMilliseconds: milliseconds - 86_400_000, toMilliseconds: milliseconds + 60_000)
        for bucket in try AnalyticsReader(dataDirectory: dataDirectory).buckets(query, by: .minute) {
            let count = bucket.accepted + bucket.anonymous + bucket.notJudged + bucket.failures
            guard count > 0 else { continue }
            lastMilliseconds = bucket.startMilliseconds
            requests += count
            rejected += bucket.rejected
            warned += bucket.warned
        }
    }
}
