internal import CountersignCore
internal import CountersignJOSE

/// The app of `countersign trigger`. A temporary app has a unique id, because the id of a deleted app is reserved for
/// some time, and two commands may run concurrently.
actor TriggerApps {
    let admin: any AdminClient
    /// The folder for the secrets of a persistent app; nil for a temporary app.
    private let keptIn: String?
    private var known: TriggerApp?
    /// The id of the temporary app, whose creation may have failed.
    private var temporaryID: String?

    init(_ admin: any AdminClient, keptIn folder: String?) {
        self.admin = admin
        keptIn = folder
    }

    /// The app. The first call loads or creates it. The app requires tokens of its key, audience and issuer.
    func app() async throws -> TriggerApp {
        if let known { return known }
        let file = keptIn.map { $0 + "/trigger.json" }
        if let app = try file.flatMap({ try TriggerApp(keptIn: $0) }) {
            known = app
            return app
        }
        let id = keptIn == nil ? "trigger-" + UUIDv7.make().suffix(12) : try await freeID()
        if keptIn == nil { temporaryID = id }
        let answer = try await admin.post(
            "apps", body: ["id": .string(id), "name": .string(TriggerApp.title)])
        let app = TriggerApp(
            id: id, writeKey: answer["write_key"].shown, key: try SigningKey.generate(.es256))
        _ = try await admin.change("apps", id, "policy") { policy in
            policy["algorithms"] = [.string(JWSAlgorithm.es256.rawValue)]
            policy["audience"] = .string(TriggerApp.audience)
            policy["issuer"] = .string(TriggerApp.issuer)
            policy["maximum_lifetime_seconds"] = .integer(Provocation.lifetime)
        }
        _ = try await admin.post(
            "apps", id, "keys",
            body: ["text": .string(app.key.publicKey.pem), "description": "countersign trigger"])
        _ = try await admin.change("apps", id, "enforcement") { $0["state"] = "required" }
        if let file { try app.keep(in: file) }
        known = app
        return app
    }

    private func freeID() async throws -> String {
        let taken = Set(try await admin.items("apps").compactMap { $0["id"].text })
        return (["trigger"] + (2...1_000).map { "trigger-\($0)" }).first { !taken.contains($0) } ?? "trigger"
    }

    /// Deletes a temporary app. Returns its id and the reason if that fails.
    func delete() async -> (id: String, reason: String)? {
        guard let id = temporaryID else { return nil }
        do {
            try await admin.deleteApp(id)
        } catch let error as CommandError where error.code == .notFound {
            return nil
        } catch {
            return (id, (error as? CommandError)?.reason ?? "\(error)")
        }
        return nil
    }
}
