internal import CountersignCore
package import Foundation

/// The directory of the queue and the tokens of one client instance.
package struct InstanceFolder: Sendable {
    /// Distinguishes instances within an app.
    package let name: String
    /// A directory chosen by the app, with a subdirectory for each instance. Nil for the default.
    package let dataDirectory: URL?
    /// Separates the data of different keys of one app, in the default directory and in the Keychain.
    package let key: String

    package init(name: String, dataDirectory: URL?, key: String) {
        self.name = name
        self.dataDirectory = dataDirectory
        self.key = key
    }

    package func validate() throws(CountersignError) {
        guard
            !name.isEmpty, !name.hasPrefix("."),
            name.utf8.allSatisfy({ $0.isASCIIAlphanumeric(or: "-_.") })
        else {
            throw CountersignError(
                .invalidConfiguration,
                "instanceName must be letters, digits, '-', '_' and '.', and not begin with '.'")
        }
        guard !DataFolder.isInAppGroup(dataDirectory?.path ?? "") else {
            throw CountersignError(
                .invalidConfiguration,
                "dataDirectory must not be in an app group's container: iOS ends a process that is suspended "
                    + "while it has a lock there. Use the app's own container, and another one in each extension"
            )
        }
    }

    package var directory: URL {
        if let dataDirectory { return dataDirectory.appendingPathComponent(name, isDirectory: true) }
        return shared.directory(of: name)
    }

    private var shared: DataFolder {
        let support =
            FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask).first
            ?? URL(fileURLWithPath: NSTemporaryDirectory())
        return DataFolder(
            shared: support.appendingPathComponent("Countersign", isDirectory: true),
            appID: DataFolder.ownAppID, writeKey: key)
    }

    /// Returns the app's token store `chosen`, or the platform's token store if `chosen` is nil.
    package func makeTokenStore(_ chosen: (any TokenStore)?, log: CountersignLog?) -> any TokenStore {
        let file = FileTokenStore(directory: directory.appendingPathComponent("tokens", isDirectory: true))
        #if canImport(Security)
            // The app may lack access to the Keychain group that it has chosen.
            if let keychain = chosen as? KeychainTokenStore {
                return PlatformTokenStore(keychain: keychain, file: file, installation: nil, log: log)
            }
        #endif
        if let chosen { return chosen }
        #if canImport(Security)
            // Includes the app's id, because apps of one team may share an access group and its items.
            let keychain = KeychainTokenStore(service: "countersign.\(DataFolder.ownAppID).\(key).\(name)")
            // Outside `dataDirectory`, which the app's next version may change. No instance name begins with a dot.
            let installation = shared.home.appendingPathComponent(".\(name).installed").path
            return PlatformTokenStore(keychain: keychain, file: file, installation: installation, log: log)
        #else
            return file
        #endif
    }
}
