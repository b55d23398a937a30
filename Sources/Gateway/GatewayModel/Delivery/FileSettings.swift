internal import CountersignCore

/// The settings of an app's hourly event files, in the folder ``GatewayConfiguration/eventFilesFolder``.
package struct FileSettings: Sendable, Equatable {
    /// Nil while files are written.
    package var pause: WayPause?
    /// Increases with every change.
    package var revision: Int64 = 1

    /// The consumer that writes an app's event files.
    package static func consumer(of appID: String) -> EventConsumerID {
        EventConsumerID(appID: appID, kind: .file, name: "hourly")
    }
}

extension FileSettings: AppSetting {
    package static let settingName = "files"

    package static func standard(for appID: String) -> FileSettings { FileSettings() }

    package static let fields: [JSONField<FileSettings>] = [
        .part("paused", \.pause, standard: WayPause(), isOperators: false), .own("revision", \.revision),
    ]
}
