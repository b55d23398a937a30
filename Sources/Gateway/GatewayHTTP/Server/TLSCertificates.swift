internal import CHTTPServer
internal import CountersignCore
internal import Foundation
package import GatewayModel

/// The certificate for HTTPS, reloaded when its files change. Open connections keep their certificate. The old
/// certificate stays in use while the new certificate is invalid or does not match the key. A failed reload is repeated
/// until it succeeds.
package final class TLSCertificates: Sendable {
    private let files: TLSFiles
    private let report: @Sendable (_ problem: String?) -> Void
    private let read: @Sendable (_ path: String) -> [UInt8]?
    private let state: Lock<State>
    private let ticker = Ticker(queue: DispatchQueue(label: "certificates"), everySeconds: 1)

    // `@unchecked Sendable`: `Lock` guards the context. A connection holds its own reference to the context.
    private struct State: @unchecked Sendable {
        var context: OpaquePointer
        var seen: [String]
        var loaded = MonotonicClock.now
        /// Why the last reload failed; nil if it succeeded.
        var problem: String?
    }

    /// Seconds after which unchanged files are loaded again. A new context has a new key for encrypting session
    /// tickets.
    private static let longestUse: UInt64 = 12 * 60 * 60

    /// Throws `invalid` if there is no valid certificate at start. `read` returns a file's content.
    package init(
        files: TLSFiles, report: @escaping @Sendable (_ problem: String?) -> Void,
        read: @escaping @Sendable (_ path: String) -> [UInt8]? = {
            FileManager.default.contents(atPath: $0).map { [UInt8]($0) }
        }
    ) throws(GatewayError) {
        self.files = files
        self.report = report
        self.read = read
        let seen = Self.signatures(files)
        state = Lock(State(context: try Self.load(files, read), seen: seen))
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
        let (isOld, isChanged, problem) = state.withLock {
            (
                MonotonicClock.now > $0.loaded + Self.longestUse * MonotonicClock.second, $0.seen != seen,
                $0.problem
            )
        }
        guard isOld || isChanged || problem != nil else { return }
        do throws(GatewayError) {
            let new = State(context: try Self.load(files, read), seen: seen)
            let old = state.withLock { state in
                defer { state = new }
                return state.context
            }
            countersign_tls_context_free(old)
            if isChanged || problem != nil { report(nil) }
        } catch {
            state.withLock { state in
                state.seen = seen
                state.problem = error.reason
            }
            if isChanged || problem != error.reason { report(error.reason) }
        }
    }

    private static func signatures(_ files: TLSFiles) -> [String] {
        files.all.flatMap { [$0.certificatePath, $0.keyPath] }.map { path in
            var status = stat()
            guard stat(path, &status) == 0 else { return "none" }
            // The status change time covers changes of the content, and also of permissions and the owner.
            #if canImport(Darwin)
                let changed = status.st_ctimespec
            #else
                let changed = status.st_ctim
            #endif
            return "\(status.st_ino) \(status.st_size) \(changed.tv_sec) \(changed.tv_nsec)"
        }
    }

    private static func load(
        _ files: TLSFiles, _ read: (String) -> [UInt8]?
    ) throws(GatewayError) -> OpaquePointer {
        let first = try loadOne(files, read)
        var last = first
        do throws(GatewayError) {
            for files in files.all.dropFirst() {
                let next = try loadOne(files, read)
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

    private static func loadOne(
        _ files: TLSFiles, _ read: (String) -> [UInt8]?
    ) throws(GatewayError) -> OpaquePointer {
        func content(_ path: String) throws(GatewayError) -> [CChar] {
            guard let bytes = read(path) else { throw GatewayError(.invalid, "cannot read \(path)") }
            return bytes.map { CChar(bitPattern: $0) }
        }
        let chain = try content(files.certificatePath)
        let key = try content(files.keyPath)
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
