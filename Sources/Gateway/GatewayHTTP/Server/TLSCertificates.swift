internal import CHTTPServer
internal import CountersignCore
internal import Foundation
package import GatewayModel

/// The certificate for HTTPS, reloaded when its files change.
///
/// A new certificate is used for new connections; open connections keep theirs. The old certificate stays in
/// use while the new one is invalid or does not match the key.
package final class TLSCertificates: @unchecked Sendable {
    private let files: TLSFiles
    private let report: @Sendable (_ problem: String?) -> Void
    private let state: Lock<State>
    private let ticker = Ticker(queue: DispatchQueue(label: "certificates"), everySeconds: 1)

    // Guarded by `Lock`. A certificate does not change after loading.
    private struct State: @unchecked Sendable {
        var generations: [OpaquePointer]
        var seen: [String]
    }

    /// The number of certificates kept in memory, because handshakes may still use an older one.
    private static let kept = 8

    /// Throws `invalid` if there is no valid certificate at start.
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

    package func start() {
        ticker.start { [weak self] in self?.refresh() }
    }

    package func stop() {
        ticker.stop()
    }

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
