internal import CHTTPServer
internal import CountersignCore
internal import Foundation
package import GatewayModel

/// The certificate that HTTPS is served with, read again when its files change.
///
/// A new one serves new connections; those that are open go on. While a new one is not valid, or its key is still the
/// old one's, the one before holds.
package final class TLSCertificates: @unchecked Sendable {
    private let files: TLSFiles
    private let report: @Sendable (_ problem: String?) -> Void
    private let state: Lock<State>
    private let ticker = Ticker(queue: DispatchQueue(label: "certificates"), everySeconds: 1)

    // `Lock` guards it; a certificate itself is not changed once it is read.
    private struct State: @unchecked Sendable {
        var generations: [OpaquePointer]
        var seen: [String]
    }

    /// Handshakes may still use the certificate before: so many generations are kept.
    private static let kept = 8

    /// Throws `invalid` when there is no valid certificate to begin with.
    package init(files: TLSFiles, report: @escaping @Sendable (_ problem: String?) -> Void)
        throws(GatewayError)
    {
        self.files = files
        self.report = report
        let seen = Self.signatures(files)
        state = Lock(State(generations: [try Self.load(files)], seen: seen))
    }

    deinit {
        for generation in state.withLock({ $0.generations }) { countersign_certificate_free(generation) }
    }

    /// The certificate for the next handshake.
    var current: OpaquePointer? { state.withLock { $0.generations.last } }

    /// Looks after the files every second.
    package func start() {
        ticker.start { [weak self] in self?.refresh() }
    }

    package func stop() {
        ticker.stop()
    }

    /// Reads the files again when they have changed since the last look.
    package func refresh() {
        let seen = Self.signatures(files)
        guard seen != state.withLock({ $0.seen }) else { return }
        do throws(GatewayError) {
            let loaded = try Self.load(files)
            let old = state.withLock { state -> OpaquePointer? in
                state.seen = seen
                state.generations.append(loaded)
                return state.generations.count > Self.kept ? state.generations.removeFirst() : nil
            }
            if let old { countersign_certificate_free(old) }
            report(nil)
        } catch {
            state.withLock { $0.seen = seen }
            report(error.reason)
        }
    }

    /// What changes when a file does.
    private static func signatures(_ files: TLSFiles) -> [String] {
        [files.certificatePath, files.keyPath].map { path in
            var status = stat()
            guard stat(path, &status) == 0 else { return "none" }
            #if canImport(Darwin)
                let changed = status.st_mtimespec
            #else
                let changed = status.st_mtim
            #endif
            return "\(status.st_ino) \(status.st_size) \(changed.tv_sec) \(changed.tv_nsec)"
        }
    }

    private static func load(_ files: TLSFiles) throws(GatewayError) -> OpaquePointer {
        func read(_ path: String) throws(GatewayError) -> [CChar] {
            guard let data = FileManager.default.contents(atPath: path) else {
                throw GatewayError(.invalid, "cannot read \(path)")
            }
            return data.map { CChar(bitPattern: $0) }
        }
        let chain = try read(files.certificatePath)
        let key = try read(files.keyPath)
        var problem: UnsafePointer<CChar>?
        guard
            let loaded = countersign_certificate_load(
                chain, chain.count, key, key.count, files.keyPassword, &problem)
        else {
            let why = problem.map { String(cString: $0) } ?? "unknown"
            throw GatewayError(
                .invalid, "the certificate \(files.certificatePath) cannot be used with its key: \(why)")
        }
        return loaded
    }
}
