internal import Foundation

/// The default directory of an app's queues, one for each app and write key.
///
/// On Linux, and on macOS without the sandbox, all apps have the same Application Support directory. Without a
/// directory of its own, an app could send the events of another app under the wrong key.
package struct DataFolder {
    /// An empty file in the directory of an instance, which marks that the user has opted out.
    static let optOutName = "opted-out"

    /// The parent directory, which several apps may share.
    let shared: URL
    let appID: String
    let writeKey: String

    var home: URL { shared.appendingPathComponent(name, isDirectory: true) }

    /// If the user has opted out under another key of the app, a new directory gets the opt-out too.
    func directory(of instanceName: String) -> URL {
        let directory = home.appendingPathComponent(instanceName, isDirectory: true)
        if !FileManager.default.fileExists(atPath: directory.path), hasOptedOut(of: instanceName) {
            try? DurableFile.write(Data(), to: directory.appendingPathComponent(Self.optOutName).path)
        }
        return directory
    }

    private func hasOptedOut(of instanceName: String) -> Bool {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: shared.path)) ?? []
        return names.contains { other in
            let directory = shared.appendingPathComponent(other).appendingPathComponent(instanceName)
            return other.hasPrefix("\(plainAppID)-") && other.utf8.count == name.utf8.count
                && FileManager.default.fileExists(
                    atPath: directory.appendingPathComponent(Self.optOutName).path)
        }
    }

    /// Such as `com.example.notes-9d2c0b1f6a7e8d35`.
    var name: String {
        let hex = String(Self.hash(writeKey.utf8), radix: 16)
        return "\(plainAppID)-" + String(repeating: "0", count: 16 - hex.count) + hex
    }

    /// The app's id, with `_` instead of characters that a file system may reject.
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
