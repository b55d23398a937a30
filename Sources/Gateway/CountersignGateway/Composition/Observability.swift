internal import CountersignCore
internal import Foundation
internal import GatewayHTTP
internal import GatewayIngest
internal import GatewayModel
internal import GatewayObservability

struct Observability: Sendable {
    let metrics = Metrics()
    let recorder = AnalyticsRecorder()
    let log: GatewayLog
    /// Nil without telemetry export. Traces are not recorded then.
    let exporter: TelemetryExporter?
    let sampler: TraceSampler?
    let observer: ObserverGroup

    init(
        _ configuration: GatewayConfiguration, now: @escaping @Sendable () -> Date
    ) throws(GatewayError) {
        if let file = configuration.telemetry?.certificateAuthorityFile,
            !FileManager.default.isReadableFile(atPath: file)
        {
            throw GatewayError(
                .invalid, "otlp-ca-file: cannot read \(file); give a PEM file with the collector's CA")
        }
        let log = GatewayLog(
            level: configuration.logLevel, format: configuration.logFormat, now: now)
        self.log = log
        sampler = configuration.telemetry.map { TraceSampler(ratio: $0.sampleRatio) }
        exporter = configuration.telemetry.map { [metrics] rules in
            TelemetryExporter(
                resource: OTLPResource(
                    url: configuration.publicURL ?? configuration.url(port: configuration.port)),
                metrics: metrics, log: log, post: Self.post(by: rules))
        }
        var members: [any GatewayObserver] = [metrics, recorder]
        if configuration.logLevel > .off { members.append(log) }
        if let exporter { members.append(exporter) }
        observer = ObserverGroup(members: members)
    }

    /// Private addresses are allowed, because an operator configures the collector.
    private static func post(by rules: TelemetryRules) -> TelemetryExporter.Post {
        { path, body, isCancelled in
            let packed = Gzip.compress(body)
            let request = OutboundRequest(
                url: rules.endpoint + path, body: packed ?? body,
                headers: rules.headers + [("Content-Type", "application/json")]
                    + (packed == nil ? [] : [("Content-Encoding", "gzip")]),
                schemes: "http,https", certificateAuthorityFile: rules.certificateAuthorityFile,
                allowsPrivateAddresses: true, timeoutMilliseconds: 10_000,
                maximumBytes: 1 << 16, cutsLongAnswers: true, isCancelled: isCancelled)
            do throws(OutboundRequest.Failure) {
                let answer = try request.perform()
                return OTLPAnswer(
                    status: answer.status, retryAfterSeconds: answer.retryAfterSeconds, body: answer.body)
            } catch {
                return OTLPAnswer(failure: error.reason)
            }
        }
    }

    /// Logs when changes to `name` can no longer be read, and when they can be read again.
    func readHealth(of name: String) -> RefreshHealth {
        RefreshHealth(report: { [log] problem in
            if let problem {
                log.note(.error, "changes cannot be read", [("of", name), ("detail", problem)])
            } else {
                log.note(.info, "changes are read again", [("of", name)])
            }
        })
    }

    /// Nil without HTTPS. Later changes of certificates are logged.
    func certificates(_ files: TLSFiles?) throws(GatewayError) -> TLSCertificates? {
        guard let files else { return nil }
        return try TLSCertificates(files: files) { [log] problem in
            if let problem {
                log.note(.error, "certificate not loaded", [("detail", problem)])
            } else {
                log.note(.info, "certificate loaded")
            }
        }
    }
}
