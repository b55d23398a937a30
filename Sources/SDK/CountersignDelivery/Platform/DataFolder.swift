internal import Foundation

/// Where an app's queues are unless it says otherwise: a folder for each app and write key.
///
/// Where apps have no folder of their own (macOS without the sandbox, Linux), all of them see the same Application Support
/// directory, and a queue that two apps share is sent by whichever comes first, under its own key.
package struct DataFolder {
    /// A file in the directory of an instance: the person wants nothing recorded.
    static let optOutName = "opted-out"

    /// The directory that all apps of this user share.
    let shared: URL
    let appID: String
    let writeKey: String

    /// For all instances of this app and write key.
    var home: URL { shared.appendingPathComponent(name, isDirectory: true) }

    /// Where earlier versions had an instance.
    func formerDirectory(of instanceName: String) -> URL {
        shared.appendingPathComponent(instanceName, isDirectory: true)
    }

    /// The directory of an instance. Data of an earlier version is moved there once. It has no app id, so
    /// the first app to start gets it.
    func directory(of instanceName: String) -> URL {
        let directory = home.appendingPathComponent(instanceName, isDirectory: true)
        let former = formerDirectory(of: instanceName)
        guard !exists(directory) else { return directory }
        guard exists(former, "queue.sqlite") else {
            if hasOptedOut(of: instanceName) { optOut(in: directory) }
            return directory
        }
        make(home)
        // One step, so that a queue and its journal are never apart. Of two processes one does it.
        try? FileManager.default.moveItem(atPath: former.path, toPath: directory.path)
        // If it cannot be moved now, it is used where it is, and moved another time.
        guard exists(directory) || !exists(former) else { return former }
        // The other apps' choice, too.
        if exists(directory, Self.optOutName) { optOut(in: former) }
        return directory
    }

    /// Whether the person has opted out where an earlier version was, or under another key of this app. The choice is about
    /// the app, not about a key.
    private func hasOptedOut(of instanceName: String) -> Bool {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: shared.path)) ?? []
        let places = names.filter { $0.hasPrefix("\(plainAppID)-") && $0.utf8.count == name.utf8.count }.map {
            shared.appendingPathComponent($0).appendingPathComponent(instanceName)
        }
        return (places + [formerDirectory(of: instanceName)]).contains { exists($0, Self.optOutName) }
    }

    private func optOut(in directory: URL) {
        make(directory)
        try? Data().write(to: directory.appendingPathComponent(Self.optOutName))
    }

    private func exists(_ directory: URL, _ file: String? = nil) -> Bool {
        let place = file.map { directory.appendingPathComponent($0) } ?? directory
        return FileManager.default.fileExists(atPath: place.path)
    }

    private func make(_ directory: URL) {
        try? FileManager.default.createDirectory(
            at: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }

    /// Such as `com.example.notes-9d2c0b1f6a7e8d35`.
    var name: String {
        let hex = String(Self.hash(writeKey.utf8), radix: 16)
        return "\(plainAppID)-" + String(repeating: "0", count: 16 - hex.count) + hex
    }

    /// In characters that every file system takes.
    private var plainAppID: String {
        let characters = appID.utf8.prefix(100).map { byte -> Character in
            byte.isASCIIAlphanumeric(or: "._-") ? Character(Unicode.Scalar(byte)) : "_"
        }
        return String(characters)
    }

    /// FNV-1a, 64 bits: it tells an app's few keys apart, and a key is no secret.
    package static func hash(_ bytes: some Sequence<UInt8>) -> UInt64 {
        bytes.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    }

    /// Identifies this app: the bundle identifier or the name of the executable.
    static var ownAppID: String {
        Bundle.main.bundleIdentifier ?? Bundle.main.executableURL?.lastPathComponent ?? "app"
    }

    /// True for a path in the container of an app group of iOS, which ends a process that is suspended while it has a lock on
    /// a file there (`0xDEAD10CC`).
    static func isInAppGroup(_ path: String) -> Bool {
        "\(path)/".contains("/Containers/Shared/AppGroup/")
    }
}
