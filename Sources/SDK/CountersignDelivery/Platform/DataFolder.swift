internal import Foundation

/// The default directory of an app's queues, one for each app and write key.
///
/// On Linux, and on macOS without the sandbox, all apps have the same Application Support directory. Without a
/// directory of its own, an app could send the events of another app under the wrong key.
package struct DataFolder {
    /// An empty file in the directory of an instance, which marks that the user has opted out.
    static let optOutName = "opted-out"

    /// Several apps may share it.
    let shared: URL
    let appID: String
    let writeKey: String

    var home: URL { shared.appendingPathComponent(name, isDirectory: true) }

    /// The directory of an instance in earlier versions.
    func formerDirectory(of instanceName: String) -> URL {
        shared.appendingPathComponent(instanceName, isDirectory: true)
    }

    /// Moves data of an earlier version to the returned directory. The first app to start gets data without an app id.
    func directory(of instanceName: String) -> URL {
        let directory = home.appendingPathComponent(instanceName, isDirectory: true)
        let former = formerDirectory(of: instanceName)
        guard !exists(directory) else { return directory }
        guard exists(former, "queue.sqlite") else {
            if hasOptedOut(of: instanceName) { optOut(in: directory) }
            return directory
        }
        make(home)
        // In one step, so that a queue and its journal stay together, and only one process succeeds.
        try? FileManager.default.moveItem(atPath: former.path, toPath: directory.path)
        // If the move has failed, the former directory stays in use until a later start.
        guard exists(directory) || !exists(former) else { return former }
        // Other apps may share the former directory, so the opt-out stays valid for them.
        if exists(directory, Self.optOutName) { optOut(in: former) }
        return directory
    }

    /// Whether the user opted out in an earlier version or under another key. An opt-out applies to all keys of an app.
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

    /// With `_` instead of characters that a file system may reject.
    private var plainAppID: String {
        let characters = appID.utf8.prefix(100).map { byte -> Character in
            byte.isASCIIAlphanumeric(or: "._-") ? Character(Unicode.Scalar(byte)) : "_"
        }
        return String(characters)
    }

    /// FNV-1a with 64 bits. A cryptographic hash is not needed, because write keys are public.
    package static func hash(_ bytes: some Sequence<UInt8>) -> UInt64 {
        bytes.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    }

    /// The bundle identifier or the name of the executable.
    static var ownAppID: String {
        Bundle.main.bundleIdentifier ?? Bundle.main.executableURL?.lastPathComponent ?? "app"
    }

    /// iOS terminates a process suspended while it holds a lock in an app group's container (`0xDEAD10CC`).
    static func isInAppGroup(_ path: String) -> Bool {
        "\(path)/".contains("/Containers/Shared/AppGroup/")
    }
}
