internal import CountersignCore
internal import CountersignDelivery
internal import Foundation

struct Profile: Sendable, Equatable {
    let name: String
    let server: String
    let token: String
    var certificateAuthorityFile: String?
    var allowsPlainHTTP = false

    /// The profile as JSON, without the token.
    var members: JSONObject {
        [
            "name": .string(name), "server": .string(server),
            "ca_file": certificateAuthorityFile.map { .string($0) } ?? .null,
            "allow_plain_http": .bool(allowsPlainHTTP),
        ]
    }
}

/// The account's profiles, stored in a file with mode 0600.
struct Profiles: Sendable {
    let path: String
    private(set) var all: [Profile] = []
    private(set) var nameInUse: String?

    /// Throws `notAuthorized` if other accounts can read the file, `failed` if it is malformed.
    init(environment: [String: String]) throws(CommandError) {
        let home = (environment["HOME"] ?? ".") + "/.config"
        let folder = environment["XDG_CONFIG_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil } ?? home
        path = folder + "/countersign/profiles.json"
        guard let values = try? FileManager.default.attributesOfItem(atPath: path) else { return }
        let mode = (values[.posixPermissions] as? NSNumber)?.intValue ?? 0
        guard mode & 0o077 == 0 else {
            throw CommandError(
                .notAuthorized, "others can read the API tokens in \(path)",
                hint: "chmod 600 \(path.quotedForShell), and replace tokens that others may have read")
        }
        guard let bytes = FileManager.default.contents(atPath: path),
            let root = JSONValue(parsing: [UInt8](bytes))
        else {
            throw CommandError(
                .failed, "\(path) cannot be read", hint: "delete it, and add the profiles again")
        }
        nameInUse = root["in_use"].text
        all = root["profiles"].elements.compactMap { value in
            guard let name = value["name"].text, let server = value["server"].text,
                let token = value["token"].text
            else { return nil }
            return Profile(
                name: name, server: server, token: token, certificateAuthorityFile: value["ca_file"].text,
                allowsPlainHTTP: value["allow_plain_http"].isTrue)
        }
    }

    /// The profile that commands use by default.
    var inUse: Profile? { all.first { $0.name == nameInUse } }

    /// Throws `conflict` if the name exists.
    mutating func add(_ profile: Profile) throws(CommandError) {
        guard !all.contains(where: { $0.name == profile.name }) else {
            throw CommandError(
                .conflict, "there is already a profile \(profile.name)",
                hint: "countersign profile delete \(profile.name)")
        }
        all.append(profile)
        if all.count == 1 { nameInUse = profile.name }
        try write()
    }

    /// Throws `notFound`.
    mutating func use(_ name: String?) throws(CommandError) {
        if let name { _ = try named(name) }
        nameInUse = name
        try write()
    }

    /// Throws `notFound`.
    mutating func delete(_ name: String) throws(CommandError) {
        _ = try named(name)
        all.removeAll { $0.name == name }
        if nameInUse == name { nameInUse = nil }
        try write()
    }

    /// The profile of this name. Throws `notFound`.
    func named(_ name: String) throws(CommandError) -> Profile {
        guard let profile = all.first(where: { $0.name == name }) else {
            throw CommandError(
                .notFound, "there is no profile \(name)",
                hint: Suggestion.nearest(to: name, among: all.map(\.name)).map { "did you mean \($0)?" }
                    ?? "`countersign profile list` shows them")
        }
        return profile
    }

    /// Replaces the file atomically.
    private func write() throws(CommandError) {
        let root: JSONValue = [
            "in_use": nameInUse.map { .string($0) } ?? .null,
            "profiles": .array(
                all.map { profile in
                    .object(profile.members.merging(["token": .string(profile.token)]) { $1 })
                }),
        ]
        do {
            try DurableFile.write(Data((root.description + "\n").utf8), to: path)
        } catch {
            let code = (error as? CocoaError)?.userInfo["errno"] as? Int32
            let cause = code.map { String(cString: strerror($0)) } ?? error.localizedDescription
            throw CommandError(.failed, "cannot write \(path): \(cause)")
        }
    }
}
