internal import CountersignCore
internal import CountersignJOSE
internal import CountersignSQLite

/// Reads projects out of `control.sqlite`.
struct ProjectReader {
    let sqlite: SQLiteConnection

    /// The project of an app, or of every app, by the app's id.
    func projects(of appID: String? = nil) throws -> [String: Project] {
        let values: [SQLiteValue] = appID.map { [.text($0)] } ?? []
        func only(_ column: String) -> String { appID == nil ? "" : "WHERE \(column) = ?1" }
        func rows(_ sql: String, _ body: (SQLiteStatement) -> Void) throws {
            let statement = try sqlite.cached(sql)
            defer { statement.reset() }
            try statement.bind(values)
            while try statement.step() { body(statement) }
        }
        var projects: [String: Project] = [:]
        try rows(
            """
            SELECT app.id, project.token, project.customer_tokens, project.inbox_epoch
            FROM app LEFT JOIN project ON project.app_id = app.id \(only("app.id"))
            """
        ) { row in
            var project = Project(token: row.optionalText(1) ?? row.text(0))
            // What cannot be read opens nothing.
            project.customerTokens = row.isNull(2) ? .off : CustomerTokens(rawValue: row.text(2)) ?? .required
            project.inbox.epoch = row.isNull(3) ? 1 : row.int64(3)
            projects[row.text(0)] = project
        }
        try rows(
            "SELECT app_id, id, secret FROM customer_token_key \(only("app_id")) ORDER BY created_ms, id"
        ) { row in
            projects[row.text(0)]?.customerTokenKeys.append(
                CustomerTokenKey(id: row.text(1), secret: row.blob(2)))
        }
        try rows("SELECT app_id, url, secret, allows_private_addresses FROM push_webhook \(only("app_id"))") {
            row in
            projects[row.text(0)]?.webhook = PushWebhook(
                url: row.text(1), secret: row.blob(2), allowsPrivateAddresses: row.int(3) != 0)
        }
        let parser = StrictJSONParser(maximumBytes: 8 << 20)
        try rows("SELECT app_id, kind, id, body FROM project_item \(only("app_id")) ORDER BY seq") { row in
            guard let kind = ProjectItem.Kind(rawValue: row.text(1)),
                let value = try? parser.parse(bytes: Array(row.text(3).utf8), { $0.value })
            else { return }
            let item = ProjectItem(id: row.text(2), json: value)
            switch kind {
            case .inAppMessage: projects[row.text(0)]?.inAppMessages.append(item)
            case .consentCategory: projects[row.text(0)]?.consentCategories.append(item)
            case .recommendationEngine: projects[row.text(0)]?.recommendationEngines.append(item)
            }
        }
        try rows(
            """
            SELECT app_id, id, revision, recipient_name, recipient_value, type, content, created_ms, expires_ms
            FROM inbox_message \(only("app_id")) ORDER BY revision
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
