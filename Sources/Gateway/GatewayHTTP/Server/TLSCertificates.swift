internal import CHTTPServer
internal import CountersignCore
internal import Foundation
package import GatewayModel

/// The certificate for HTTPS, reloaded when its files change. Open connections keep their certificate. The old
/// certificate stays in use while the new certificate is invalid or does not match the key.
package final class TLSCertificates: @unchecked Sendable {
    private let files: TLSFiles
    private let report: @Sendable (_ problem: String?) -> Void
    private let state: Lock<State>
    private let ticker = Ticker(queue: DispatchQueue(label: "certificates"), everySeconds: 1)

    // `@unchecked Sendable`: `Lock` guards the context. A connection holds its own reference to the context.
    private struct State: @unchecked Sendable {
        var context: OpaquePointer
        var seen: [String]
        var loaded = MonotonicClock.now
    }

    /// Seconds after which unchanged files are loaded again. A new context has a new key for encrypting session
    /// tickets.
    private static let longestUse: UInt64 = 12 * 60 * 60

    /// Throws `invalid` if there is no valid certificate at start.
    package init(files: TLSFiles, report: @escaping @Sendable (_ problem: String?) -> Void)
        throws(GatewayError)
    {
        self.files = files
        self.report = report
        let seen = Self.signatures(files)
        state = Lock(State(context: try Self.load(files), seen: seen))
    }

    deinit {
        countersign_tls_context_free(state.withLock { $0.context })
    }

    /// Begins TLS on a socket, with the current certificate. Returns nil if there is not enough memory.
    func open(_ socket: Int32) -> OpaquePointer? {
        state.withLock { countersign_tls_open($0.context, socket) }
    }

    package func start() {
        ticker.start { [weak self] in self?.refresh() }
    }

    package func stop() {
        ticker.stop()
    }

    package func refresh() {
        let seen = Self.signatures(files)
        let (isOld, isChanged) = state.withLock {
            (MonotonicClock.now > $0.loaded + Self.longestUse * MonotonicClock.second, $0.seen != seen)
        }
        guard isOld || isChanged else { return }
        do throws(GatewayError) {
            let new = State(context: try Self.load(files), seen: seen)
            let old = state.withLock { state in
                defer { state = new }
                return state.context
            }
            countersign_tls_context_free(old)
            if isChanged { report(nil) }
        } catch {
            state.withLock { state in
                state.seen = seen
                state.loaded = MonotonicClock.now
            }
            report(error.reason)
        }
    }

    private static func signatures(_ files: TLSFiles) -> [String] {
        files.all.flatMap { [$0.certificatePath, $0.keyPath] }.map { path in
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
        let first = try loadOne(files)
        var last = first
        do throws(GatewayError) {
            for files in files.all.dropFirst() {
                let next = try loadOne(files)
                guard countersign_tls_add(last, next) != 0 else {
                    countersign_tls_context_free(next)
                    throw GatewayError(.invalid, "there is not enough memory for the certificates")
                }
                last = next
            }
        } catch {
            // Frees the added contexts too.
            countersign_tls_context_free(first)
            throw error
        }
        return first
    }

    private static func loadOne(_ files: TLSFiles) throws(GatewayError) -> OpaquePointer {
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
            let loaded = countersign_tls_context(
                chain, Int32(chain.count), key, Int32(key.count), files.keyPassword, &problem)
        else {
            let why = problem.map { String(cString: $0) } ?? "unknown"
            throw GatewayError(
                .invalid, "the certificate \(files.certificatePath) cannot be used with its key: \(why)")
        }
        return loaded
    }
}
