internal import CountersignCore
internal import CountersignJSON
internal import CountersignSQLite
internal import GatewayModel

struct SettingTable {
    let connection: any SQLConnection

    /// The settings of one app or of all apps, by the app's id. Apps without a stored setting are missing.
    func all<Setting: AppSetting>(
        _ type: Setting.Type = Setting.self, of appID: String? = nil
    ) throws -> BytewiseDictionary<Setting> {
        let rows = try connection.all(
            "SELECT app_id, body FROM app_setting WHERE name = ?1 \(appID == nil ? "" : "AND app_id = ?2")",
            [.text(Setting.settingName)] + (appID.map { [.text($0)] } ?? [])
        ) { ($0.text(0), Array($0.text(1).utf8)) }
        return BytewiseDictionary(
            uniqueKeysWithValues: try rows.map { appID, stored in
                let body = try connection.opened(stored, .setting, appID, Setting.settingName)
                let parser = StrictJSONParser(maximumBytes: max(1, body.count))
                guard let members = try parser.parse(bytes: body, { $0.value }).members else {
                    throw GatewayError(.storage, "the setting \(Setting.settingName) of \(appID) is damaged")
                }
                return (appID, Setting(kept: members, for: appID))
            })
    }

    func one<Setting: AppSetting>(_ type: Setting.Type = Setting.self, of appID: String) throws -> Setting? {
        try all(type, of: appID)[appID]
    }

    func effective<Setting: AppSetting>(
        _ type: Setting.Type = Setting.self, of appID: String
    ) throws -> Setting {
        try one(of: appID) ?? .standard(for: appID)
    }

    /// Nil deletes the setting.
    func put<Setting: AppSetting>(_ setting: Setting?, of appID: String) throws {
        guard let setting else {
            try connection.run(
                "DELETE FROM app_setting WHERE app_id = ?1 AND name = ?2", .text(appID),
                .text(Setting.settingName))
            return
        }
        var body = setting.kept.bytes
        if SecretColumn.setting.isSecret([appID, Setting.settingName]) {
            body = try connection.sealed(body, .setting, appID, Setting.settingName)
        }
        try connection.run(
            """
            INSERT INTO app_setting (app_id, name, body) VALUES (?1, ?2, ?3)
            ON CONFLICT (app_id, name) DO UPDATE SET body = excluded.body
            """, .text(appID), .text(Setting.settingName),
            .text(String(decoding: body, as: UTF8.self)))
    }
}
