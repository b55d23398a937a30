internal import CHTTPServer
internal import Foundation
package import GatewayModel

package enum ProcessLimits {
    /// File descriptors for other purposes than connections: databases, backups, outgoing requests.
    private static let otherFiles = 512
    package static var openFiles: Int { countersign_open_files() }
    /// Runs seldom, because counting the free memory locks the heap for milliseconds.
    private static let ticker = Ticker(queue: DispatchQueue(label: "memory"), everySeconds: 10)

    /// Raises the limit of open files, and configures the allocator to return unused memory.
    package static func prepare(for limits: GatewayLimits, listeners: Int) {
        let connections = limits.connections + ConnectionTable.mostClosing(limits.connections)
        countersign_raise_open_files(listeners * connections + otherFiles)
        countersign_return_freed_memory()
        ticker.start { countersign_return_free_pages() }
    }

    /// Returns the connections for each listener: `wanted`, or fewer if the limit of open files requires it.
    package static func connections(_ wanted: Int, listeners: Int, openFiles: Int) -> Int {
        let most = (openFiles - min(otherFiles, openFiles / 2)) / max(1, listeners)
        // Closing connections still have their descriptors.
        guard most < wanted + ConnectionTable.mostClosing(wanted) else { return wanted }
        return min(wanted, max(1, most * 4 / 5, most - ConnectionTable.mostClosing(most)))
    }
}
