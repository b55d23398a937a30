internal import CountersignCore
internal import Foundation
package import GatewayModel

/// Lets a command that changed a data directory wait until the running gateway has loaded the change.
///
/// The gateway creates the file `gateway.changes` with two counters. The first counts requests of commands to load
/// changes. The second is the number of the last request after which the gateway has loaded all changes.
package final class ChangeSignal: Sendable {
    private static let fileName = "gateway.changes"
    private static let pauseMicroseconds: UInt32 = 5_000

    private let descriptor: Int32

    /// Marks earlier requests as loaded, so must be called before the gateway loads the data directory.
    package init(in directory: DataDirectory) throws(GatewayError) {
        descriptor = open(try directory.file(Self.fileName), O_RDWR | O_CLOEXEC)
        noteLoaded(asked)
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    package var asked: UInt64 { Self.number(descriptor, 0) }

    package var loaded: UInt64 { Self.number(descriptor, 1) }

    package func noteLoaded(_ number: UInt64) { Self.write(number, descriptor, 1) }

    /// Returns true once the running gateway has loaded everything committed before the call, or without a running
    /// gateway. Returns false after `seconds`.
    package static func waitForGateway(_ dataDirectory: String, seconds: Int64 = 5) -> Bool {
        let descriptor = open(dataDirectory + "/" + fileName, O_RDWR | O_CLOEXEC)
        // No gateway of this version has run here. An older version loads changes within a second.
        guard descriptor >= 0 else { return true }
        defer { close(descriptor) }
        guard DataDirectoryLock.isHeld(in: dataDirectory) else { return true }
        // Several commands may increment at the same time.
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
