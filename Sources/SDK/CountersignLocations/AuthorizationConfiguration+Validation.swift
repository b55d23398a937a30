internal import CountersignCore
internal import Foundation

extension AuthorizationConfiguration {
    func warnAboutPayload(log: CountersignLog?) {
        func names(_ value: JSONValue) -> Bool {
            switch value {
            case .string(let text): text.contains("{refreshToken}")
            case .array(let elements): elements.contains(where: names)
            case .object(let members): members.values.contains(where: names)
            default: false
            }
        }
        guard let refreshPayload = refreshPayload?.limited(), !refreshPayload.isEmpty,
            !refreshPayload.values.contains(where: names)
        else {
            return
        }
        log?(
            .warning,
            "no field of refreshPayload has {refreshToken}, so requests would have no refresh token", [:])
    }
}
