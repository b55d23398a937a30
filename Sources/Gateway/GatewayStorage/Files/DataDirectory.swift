internal import CountersignCore
internal import Foundation
package import GatewayModel

/// The folder of a gateway's data.
package struct DataDirectory: Sendable {
    package let path: String

    private static let another = "Give another folder."

    /// Creates the folder with mode 0700. Throws `dataDirectory` also if other users can access an existing folder.
    package init(path: String) throws(GatewayError) {
        let absolute = URL(fileURLWithPath: path).standardizedFileURL.path
        self.path = absolute
        let manager = FileManager.default
        var isFolder: ObjCBool = false
        if manager.fileExists(atPath: absolute, isDirectory: &isFolder) {
            guard isFolder.boolValue else {
                throw GatewayError(.dataDirectory, "\(absolute) is a file, not a folder", hint: Self.another)
            }
            let mode = (try? manager.attributesOfItem(atPath: absolute))?[.posixPermissions] as? NSNumber
            if let mode, mode.intValue & 0o077 != 0 {
                throw GatewayError(
                    .dataDirectory,
                    "others can read or write \(absolute), which holds keys and events; run: chmod 700 \(absolute)"
                )
            }
            return
        }
        do {
            try manager.createDirectory(
                atPath: absolute, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            throw GatewayError(.dataDirectory, "cannot create the folder \(absolute)", hint: Self.another)
        }
    }

    /// Returns the path of a file. Creates an empty file with mode 0600 if necessary.
    ///
    /// An existing file is not opened: closing a descriptor releases all POSIX locks of the process on the file
    /// (fcntl(2)), including SQLite's. Another process could then delete the write-ahead log in use
    /// (https://sqlite.org/howtocorrupt.html, section 2.2).
    package func file(_ name: String) throws(GatewayError) -> String {
        let file = path + "/" + name
        let descriptor = open(file, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0o600)
        if descriptor >= 0 {
            close(descriptor)
        } else if errno != EEXIST || access(file, R_OK | W_OK) != 0 {
            throw GatewayError(
                .dataDirectory, "cannot write \(file): \(String(cString: strerror(errno)))")
        }
        return file
    }

    package func lock() throws(GatewayError) -> DataDirectoryLock {
        let file = try self.file("gateway.lock")
        let descriptor = open(file, O_RDWR | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw GatewayError(.dataDirectory, "cannot open \(file): \(String(cString: strerror(errno)))")
        }
        // A check for a running gateway holds the lock for a moment, so retry.
        for _ in 0..<50 {
            if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return DataDirectoryLock(descriptor: descriptor) }
            usleep(10_000)
        }
        close(descriptor)
        throw GatewayError(
            .alreadyRunning, "another gateway is running on \(path)",
            hint: "Stop it, or give another folder.")
    }
}

/// The lock on a data directory. It is released with this object or with the process.
package final class DataDirectoryLock: Sendable {
    private let descriptor: Int32

    init(descriptor: Int32) {
        self.descriptor = descriptor
    }

    deinit {
        // Unlocks explicitly, because a forked child may still hold the descriptor.
        flock(descriptor, LOCK_UN)
        close(descriptor)
    }

    static func isHeld(in dataDirectory: String) -> Bool {
        let descriptor = open(dataDirectory + "/gateway.lock", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        return flock(descriptor, LOCK_SH | LOCK_NB) != 0
    }

    /// Writes the gateway's URLs to the lock file, for other programs.
    package func note(_ gateway: RunningGateway) {
        let text = Array("\(gateway.url)\n\(gateway.adminURL)\n\(gateway.dashboardURL)\n".utf8)
        // Overwrite before truncating: a truncated file might get no space again on a full disk.
        _ = pwrite(descriptor, text, text.count, 0)
        _ = ftruncate(descriptor, off_t(text.count))
    }
}

/// A gateway running on a data directory.
package struct RunningGateway: Sendable {
    /// The URL for clients, such as `http://127.0.0.1:8787`.
    package let url: String
    /// The URL for operators. Differs from `url` if there is a separate admin listener.
    package let adminURL: String

    /// The dashboard's URL: without an admin listener the public URL, if it is known.
    package let dashboardURL: String

    package init(url: String, adminURL: String, dashboardURL: String? = nil) {
        self.url = url
        self.adminURL = adminURL
        self.dashboardURL = dashboardURL ?? adminURL
    }

    package init?(dataDirectory: String) {
        guard DataDirectoryLock.isHeld(in: dataDirectory),
            let text = FileManager.default.contents(atPath: dataDirectory + "/gateway.lock")
        else { return nil }
        let lines = String(decoding: text, as: UTF8.self).split(separator: "\n").map(String.init)
        guard lines.count == 3 else { return nil }
        (url, adminURL, dashboardURL) = (lines[0], lines[1], lines[2])
    }
}
