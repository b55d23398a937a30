internal import CountersignSQLite
internal import Foundation
internal import GatewayModel
internal import GatewayStorage

/// Template files of a data directory, created once in a process, because migrations take longer than most tests.
package enum FolderTemplate {
    private struct Files {
        var contents: [String: Data] = [:]
        /// The range of the event log's unique id in `events.sqlite`.
        var logID = 0..<0
        var writeKey: String?
    }

    private static let nothing = Result { try make(.nothing) }
    private static let issuingKey = Result { try make(.issuingKey) }
    private static let app = Result { try make(.app) }

    private static func files(of content: TestContent) throws -> Files {
        switch content {
        case .nothing: try nothing.get()
        case .issuingKey: try issuingKey.get()
        case .app: try app.get()
        }
    }

    private static func make(_ content: TestContent) throws -> Files {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "countersign-template-" + UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: folder) }
        var files = Files()
        files.writeKey = try make(SQLiteStorage(dataDirectory: folder.path), content)
        for file in try FileManager.default.contentsOfDirectory(atPath: folder.path)
        where file.hasSuffix(".sqlite") {
            files.contents[file] = try Data(contentsOf: folder.appendingPathComponent(file))
        }
        let events = try SQLiteConnection(path: folder.appendingPathComponent("events.sqlite").path)
        let id = try events.first("SELECT id FROM event_log") { $0.blob(0) } ?? []
        guard let place = files.contents["events.sqlite"]?.range(of: Data(id)) else {
            throw GatewayError(.storage, "events.sqlite does not have its log's id in one piece")
        }
        files.logID = place
        return files
    }

    private static func make(_ storage: SQLiteStorage, _ content: TestContent) throws -> String? {
        _ = try storage.openControl(as: .account)
        _ = try storage.openTokenFamilies(refreshKey: [UInt8](repeating: 0, count: 32))
        _ = try storage.openSecrets()
        _ = try storage.openDeliveries()
        _ = try storage.openEarlierStreams()
        _ = try storage.openAnalytics(from: NoTraffic(), now: { Date() }, report: { _ in })
        try storage.openEvents(EventStoreOptions(pendingBytes: 1)).close()
        return try content.fill(storage)
    }

    /// Returns the write key of the app, if the content has one.
    @discardableResult
    package static func copy(_ content: TestContent = .nothing, to folder: String) throws -> String? {
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let files = try files(of: content)
        for (name, contents) in files.contents {
            var contents = contents
            if name == "events.sqlite" {
                contents.replaceSubrange(files.logID, with: [UInt8].random(count: files.logID.count))
            }
            guard
                FileManager.default.createFile(
                    atPath: folder + "/" + name, contents: contents, attributes: [.posixPermissions: 0o600])
            else { throw CocoaError(.fileWriteUnknown) }
        }
        return files.writeKey
    }
}
