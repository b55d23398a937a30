internal import CountersignCore
internal import CountersignJOSE
internal import CountersignJSON
internal import CountersignSQLite
internal import GatewayModel

/// Reads projects from the control database.
struct ProjectReader {
    let connection: any SQLConnection

    /// The project of one app or of all apps, by the app's id.
    func projects(of appID: String? = nil) throws -> BytewiseDictionary<Project> {
        let values: [SQLValue] = appID.map { [.text($0)] } ?? []
        func only(_ column: String = "app_id") -> String { appID == nil ? "" : "WHERE \(column) = ?1" }
        func rows(_ sql: String, _ body: (any SQLRow) throws -> Void) throws {
            try connection.each(sql, values) {
                try body($0)
                return true
            }
        }
        var projects: BytewiseDictionary<Project> = [:]
        let settings = try SettingTable(connection: connection).all(ProjectSettings.self, of: appID)
        try rows("SELECT id FROM app \(only("id"))") { row in
            let id = row.text(0)
            var project = Project(settings: settings[id] ?? .standard(for: id))
            project.inbox.epoch = project.settings.inboxEpoch
            projects[id] = project
        }
        try rows(
            "SELECT app_id, id, secret FROM customer_token_key \(only()) ORDER BY created_ms, id"
        ) { row in
            let (appID, id) = (row.text(0), row.text(1))
            projects[appID]?.customerTokenKeys.append(
                CustomerTokenKey(
                    id: id, secret: try connection.opened(row.blob(2), .customerTokenKey, appID, id)))
        }
        let parser = StrictJSONParser(maximumBytes: 8 << 20)
        try rows("SELECT app_id, kind, id, body FROM project_item \(only()) ORDER BY seq") { row in
            guard let kind = ProjectItem.Kind(rawValue: row.text(1)),
                let members = try? parser.parse(bytes: Array(row.text(3).utf8), { $0.value.members })
            else { return }
            let item = ProjectItem(id: row.text(2), members: members)
            switch kind {
            case .inAppMessage: projects[row.text(0)]?.inAppMessages.append(item)
            case .consentCategory: projects[row.text(0)]?.consentCategories.append(item)
            }
        }
        try rows(
            """
            SELECT app_id, id, revision, recipient_name, recipient_value, type, content, created_ms, expires_ms
            FROM inbox_message \(only()) ORDER BY revision
            """
        ) { row in
            var recipient: CustomerIdentifier?
            if let name = row.optionalText(3), let value = row.optionalText(4) {
                recipient = CustomerIdentifier(name: name, value: value)
            }
            projects[row.text(0)]?.inbox.add(
                InboxMessage(
                    id: row.text(1), revision: row.int64(2), recipient: recipient, type: row.text(5),
                    content: Array(row.text(6).utf8), createdMilliseconds: row.int64(7),
                    expiresMilliseconds: row.optionalInt64(8)))
        }
        return projects
    }
}
