internal import CHTTPServer
internal import Foundation
package import GatewayModel

/// What a process that is a gateway, and nothing else, asks of the system.
package enum ProcessLimits {
    /// Files beside the connections: databases, backups, outgoing requests.
    private static let otherFiles = 512
    private static let ticker = Ticker(queue: DispatchQueue(label: "memory"), everySeconds: 1)

    /// Makes room for as many connections as may be open, and lets memory go back once it is not needed.
    package static func prepare(for limits: GatewayLimits) {
        countersign_raise_open_files(limits.connections + otherFiles)
        countersign_return_freed_memory()
        ticker.start { countersign_return_free_pages() }
    }
}
