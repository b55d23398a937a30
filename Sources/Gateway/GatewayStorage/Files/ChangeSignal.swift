internal import CountersignCore
internal import Foundation
package import GatewayModel

/// Lets a command that changed a data directory wait until the running gateway has loaded the change.
///
/// The file `gateway.changes` has two counters: changes that commands have asked the gateway to load, and
/// changes that it has loaded. The gateway creates the file. Without a running gateway, a command does not
/// wait.
package final class ChangeSignal: Sendable {
    private static let fileName = "gateway.changes"
    private static let pauseMicroseconds: UInt32 = 5_000

    private let descriptor: Int32

    /// Opens the counters in the gateway. Must be called before the gateway loads the data directory and
    /// serves requests. Marks earlier requests as loaded. Throws `dataDirectory`.
    package init(in directory: DataDirectory) throws(GatewayError) {
        descriptor = open(try directory.file(Self.fileName), O_RDWR | O_CLOEXEC)
        noteLoaded(asked)
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    /// The number of the last change that a command asks to load.
    package var asked: UInt64 { Self.number(descriptor, 0) }

    /// The number of the last change that is loaded.
    package var loaded: UInt64 { Self.number(descriptor, 1) }

    /// Records that all changes up to this one are loaded.
    package func noteLoaded(_ number: UInt64) { Self.write(number, descriptor, 1) }

    /// Waits in a command. Returns true once the running gateway has loaded everything committed before the
    /// call, or if no gateway is running. Returns false after `seconds`.
    package static func waitForGateway(_ dataDirectory: String, seconds: Int64 = 5) -> Bool {
        let descriptor = open(dataDirectory + "/" + fileName, O_RDWR | O_CLOEXEC)
        // No gateway of this version has run here. An older version loads changes within a second.
        guard descriptor >= 0 else { return true }
        defer { close(descriptor) }
        guard DataDirectoryLock.isHeld(in: dataDirectory) else { return true }
        // Commands may increment at the same time. Closing the descriptor releases the lock.
        flock(descriptor, LOCK_EX)
        let own = number(descriptor, 0) + 1
        write(own, descriptor, 0)
        flock(descriptor, LOCK_UN)
        let end = Uptime.milliseconds + seconds * 1_000
        while number(descriptor, 1) < own {
            guard DataDirectoryLock.isHeld(in: dataDirectory) else { return true }
            guard Uptime.milliseconds < end else { return false }
            usleep(pauseMicroseconds)
        }
        return true
    }

    private static func number(_ descriptor: Int32, _ place: off_t) -> UInt64 {
        var number: UInt64 = 0
        // A new file is empty.
        return pread(descriptor, &number, 8, place * 8) == 8 ? number : 0
    }

    private static func write(_ number: UInt64, _ descriptor: Int32, _ place: off_t) {
        var number = number
        _ = pwrite(descriptor, &number, 8, place * 8)
    }
}
