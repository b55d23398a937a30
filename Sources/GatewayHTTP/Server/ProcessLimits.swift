internal import CHTTPServer
internal import Foundation
package import GatewayModel

/// What a process that is a gateway, and nothing else, asks of the system.
package enum ProcessLimits {
    /// Files beside the connections: databases, backups, outgoing requests.
    private static let otherFiles = 512
    /// The soft limit of open files.
    package static var openFiles: Int { countersign_open_files() }
    private static let ticker = Ticker(queue: DispatchQueue(label: "memory"), everySeconds: 1)

    /// Raises the limit of open files for the connections of so many listeners, and lets memory go back once it is not
    /// needed.
    package static func prepare(for limits: GatewayLimits, listeners: Int) {
        let connections = limits.connections + ConnectionWatch.mostLeaving(limits.connections)
        countersign_raise_open_files(listeners * connections + otherFiles)
        countersign_return_freed_memory()
        ticker.start { countersign_return_free_pages() }
    }

    /// Returns how many connections each listener may have open: `wanted`, or as many as the limit of open files leaves.
    package static func connections(_ wanted: Int, listeners: Int, openFiles: Int) -> Int {
        let most = (openFiles - min(otherFiles, openFiles / 2)) / max(1, listeners)
        // Connections that are being closed still have their descriptors.
        guard most < wanted + ConnectionWatch.mostLeaving(wanted) else { return wanted }
        return min(wanted, max(1, most * 4 / 5, most - ConnectionWatch.mostLeaving(most)))
    }
}
