internal import CountersignCore
package import Foundation
package import GatewayModel
package import GatewayStorage

/// The hourly event files of all apps.
///
/// The manifest in an app's folder, not the stored progress, decides where writing continues. A file counts only
/// if the manifest lists it, so a crash before the progress is stored neither loses nor repeats events.
package struct EventFiles: WayKind {
    /// The maximum size of a file before compression, in bytes. The event that reaches it is included.
    package static let longestFile = 256 << 20

    package let kind = EventConsumerID.Kind.file
    package let retry = Retry(first: 10, most: 10)
    /// Detects that an operator has moved the folder away.
    package let probeMilliseconds: Int64? = 3_600_000
    package let hasDuty: @Sendable () -> Bool
    private let directory: AppDirectory
    private let output: FileOutput

    /// Nothing is written while fewer than `freeBytes` are free on the folder's disk, or while `hasDuty` returns
    /// false because another gateway writes. `run` writes the files of all apps, because compressing a long hour
    /// takes seconds. `report` is called at the first failure, and again once the writes of all apps succeed.
    package init(
        _ directory: AppDirectory, folder: String, longestFile: Int = EventFiles.longestFile,
        freeBytes: Int = 0, hasDuty: @escaping @Sendable () -> Bool = { true },
        now: @escaping @Sendable () -> Date, run: @escaping WayRun = serialRun("event files", .utility),
        report: @escaping @Sendable (EventFileReport) -> Void
    ) {
        self.directory = directory
        output = FileOutput(
            folder: folder, longestFile: longestFile, freeBytes: freeBytes, now: now, run: run, report: report
        )
        self.hasDuty = hasDuty
    }

    package func routes() throws -> [DeliveryRoute] {
        let settings = try directory.settings(FileSettings.self)
        return try directory.apps().map { app in
            let setting = settings[app.id] ?? .standard(for: app.id)
            var route = DeliveryRoute(FileSettings.consumer(of: app.id))
            route.isPaused = setting.pause != nil
            route.revision = setting.revision
            return route
        }
    }

    package func open(_ id: EventConsumerID) -> any Way { EventFileWay(of: id.appID, output) }
}
