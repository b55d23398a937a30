internal import CountersignCore
internal import CountersignJOSE

/// The apps of `countersign trigger`, each with a unique id: the id of a deleted app is reserved for some
/// time, and two commands may run concurrently.
actor TriggerApps {
    let admin: any AdminClient
    /// The folder for the secrets of persistent apps; nil deletes the apps.
    private let keptIn: String?
    private var known: [String: TriggerApp] = [:]
    /// Includes apps for which creation may have failed.
    private var made: [String] = []

    init(_ admin: any AdminClient, keptIn folder: String?) {
        self.admin = admin
        keptIn = folder
    }

    /// The app with this name. A new app is configured by `prepare`.
    func app(
        _ name: String, prepare: @Sendable (any AdminClient, TriggerApp) async throws -> Void
    ) async throws -> TriggerApp {
        if let app = known[name] { return app }
        let file = keptIn.map { "\($0)/\(name).json" }
        if let app = try file.flatMap({ try TriggerApp(keptIn: $0) }) {
            known[name] = app
            return app
        }
        let id = keptIn == nil ? name + "-" + UUIDv7.make().suffix(12) : try await freeID(name)
        if keptIn == nil { made.append(id) }
        let answer = try await admin.post(
            "apps", body: ["id": .string(id), "name": .string(TriggerApp.title)])
        let app = TriggerApp(
            id: id, writeKey: answer["write_key"].shown, key: try SigningKey.generate(.es256))
        _ = try await admin.change("apps", id, "policy") { policy in
            policy["algorithms"] = [.string(JWSAlgorithm.es256.rawValue)]
        }
        try await prepare(admin, app)
        if let file { try app.keep(in: file) }
        known[name] = app
        return app
    }

    private func freeID(_ name: String) async throws -> String {
        let taken = Set(try await admin.items("apps").compactMap { $0["id"].text })
        return ([name] + (2...1_000).map { "\(name)-\($0)" }).first { !taken.contains($0) } ?? name
    }

    /// Deletes temporary apps. Returns the ids that could not be deleted, with reasons.
    func delete() async -> [(id: String, reason: String)] {
        var left: [(id: String, reason: String)] = []
        for id in made {
            do {
                try await admin.deleteApp(id)
            } catch let error as CommandError where error.code == .notFound {
                continue
            } catch {
                left.append((id, (error as? CommandError)?.reason ?? "\(error)"))
            }
        }
        made = []
        known = [:]
        return left
    }
}
