internal import GatewayHTTP
internal import GatewayModel
internal import GatewayObservability

/// What hears of every request: the metrics, the counts of the dashboard, and the log.
struct Observability: Sendable {
    let metrics = Metrics()
    let recorder = AnalyticsRecorder()
    let log: GatewayLog
    let commits = CommitSignal()
    let observer: ObserverGroup

    init(logLevel: LogLevel, logFormat: LogFormat) {
        log = GatewayLog(level: logLevel, format: logFormat)
        observer = ObserverGroup(
            members: logLevel > .off ? [metrics, recorder, commits, log] : [metrics, recorder, commits])
    }

    /// Nil when HTTPS is not served. What becomes of later certificates is logged.
    func certificates(_ files: TLSFiles?) throws(GatewayError) -> TLSCertificates? {
        guard let files else { return nil }
        return try TLSCertificates(files: files) { [log] problem in
            if let problem {
                log.note(.error, "certificate not taken over", [("detail", problem)])
            } else {
                log.note(.info, "certificate taken over")
            }
        }
    }
}
