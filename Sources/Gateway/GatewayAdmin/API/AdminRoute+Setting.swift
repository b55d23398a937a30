internal import CountersignCore
internal import GatewayModel
internal import GatewayStorage

extension AdminRoute {
    /// Routes that show and change a setting of an app. The OpenAPI document has the shape under `name`, or
    /// inline if nil. `set` makes the change in the transaction that checks `If-Match`.
    static func setting<Setting: AppSetting>(
        _ type: Setting.Type, _ path: String, _ summaries: (show: String, set: String),
        named name: String? = nil,
        set: @escaping @Sendable (AdminCall, AdminBody, _ from: Setting, _ to: Setting) throws -> Void = {
            call, _, _, setting in
            try call.directory.set(setting, for: call[0])
        }
    ) -> [AdminRoute] {
        let shape = name.map { .named($0, .object(type.shown)) } ?? JSONShape.object(type.shown)
        return [
            AdminRoute("GET", "/apps/{app}/" + path, .viewer, summaries.show, .json(shape)) { call in
                let setting = try call.directory.setting(type, of: call[0]).json
                return call.answer(setting, tag: setting)
            },
            AdminRoute(
                "PUT", "/apps/{app}/" + path, .operator, summaries.set, body: .object(type.taken),
                match: .required, .json(shape)
            ) { call in
                let body = try call.body()
                return try call.changing { call in
                    let current = try call.directory.setting(type, of: call[0])
                    try call.checkMatch(current.json)
                    var next = current
                    next.replace(with: body.members, for: call[0])
                    try set(call, body, current, next)
                    let stored = try call.directory.setting(type, of: call[0]).json
                    return call.answer(stored, tag: stored)
                }
            },
        ]
    }
}
