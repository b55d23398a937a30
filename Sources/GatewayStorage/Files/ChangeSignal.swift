internal import CountersignCore
internal import Foundation
package import GatewayModel

/// How a command that has changed a data directory waits until the gateway that runs there has loaded the change.
///
/// The file `gateway.changes` holds two numbers: how many changes commands have asked the gateway to load, and up to which
/// it has loaded them. The gateway makes the file; without a gateway that runs, nothing is waited for.
package final class ChangeSignal: Sendable {
    private static let fileName = "gateway.changes"
    private static let pauseMicroseconds: UInt32 = 5_000

    private let descriptor: Int32

    /// The gateway's side, before the gateway answers its first request: it loads then what was committed until now. Throws
    /// `dataDirectory`.
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

    /// Says that all changes up to this one are loaded.
    package func noteLoaded(_ number: UInt64) { Self.write(number, descriptor, 1) }

    /// The command's side: returns once the gateway that runs on the data directory has loaded what was committed before, or
    /// none runs. Returns false when it has not within so many seconds.
    package static func settle(_ dataDirectory: String, seconds: Int64 = 5) -> Bool {
        let descriptor = open(dataDirectory + "/" + fileName, O_RDWR | O_CLOEXEC)
        // No gateway with this file has run here. An older version loads changes within a second.
        guard descriptor >= 0 else { return true }
        defer { close(descriptor) }
        guard DataDirectoryLock.isHeld(in: dataDirectory) else { return true }
        // Commands may ask at the same time. The lock ends with the descriptor at the latest.
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
