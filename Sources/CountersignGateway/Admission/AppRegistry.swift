internal import CountersignCore
internal import CountersignJOSE
internal import Foundation

/// The apps in memory, as of the last change in the directory.
///
/// A request takes its app once and keeps it, so it is judged by one set of keys whatever changes meanwhile.
final class AppRegistry: Sendable {
    private let directory: AppDirectory
    /// Tokens that were accepted; an app that was loaded anew begins without.
    private let verifiedTokens = VerifiedTokenCache()
    private let apps = Lock(Apps())
    private let version = Lock<Int64?>(nil)
    private let timer = Lock<(any DispatchSourceTimer)?>(nil)

    private struct Apps {
        var byWriteKey: [[UInt8]: AdmittedApp] = [:]
        var byProject: [String: AdmittedApp] = [:]
    }

    init(directory: AppDirectory) {
        self.directory = directory
    }

    /// The app that this write key belongs to, or nil.
    func app(writeKey: String) -> AdmittedApp? {
        let hash = SHA256.digest(writeKey.utf8)
        return apps.withLock { $0.byWriteKey[hash] }
    }

    /// The app that this project token stands for in a path, or nil.
    func app(projectToken: some StringProtocol) -> AdmittedApp? {
        let token = String(projectToken)
        return apps.withLock { $0.byProject[token] }
    }

    /// Looks for changes five times a second, on a thread of its own.
    func start() {
        let source = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "app registry"))
        source.schedule(deadline: .now() + 0.2, repeating: 0.2)
        source.setEventHandler { @Sendable [weak self] in
            // What cannot be read now is read at the next look; until then the last good set holds.
            try? self?.refresh()
        }
        source.resume()
        timer.withLock { $0 = source }
    }

    func stop() {
        timer.withLock { timer in
            timer?.cancel()
            timer = nil
        }
    }

    /// Loads the apps when somebody has changed them since the last look.
    func refresh() throws(GatewayError) {
        let current = try directory.version()
        guard current != version.withLock({ $0 }) else { return }
        let loaded = try load()
        apps.withLock { $0 = loaded }
        version.withLock { $0 = current }
    }

    private func load() throws(GatewayError) -> Apps {
        let projects = try directory.projects()
        var apps = Apps()
        var byID: [String: AdmittedApp] = [:]
        for app in try directory.apps() {
            let admitted = AdmittedApp(
                app, project: projects[app.id] ?? Project(token: app.id), cache: verifiedTokens)
            byID[app.id] = admitted
            // An app whose id is another's token is reached by write key only.
            let holder = apps.byProject[admitted.project.token]
            if holder == nil || admitted.project.token != app.id {
                apps.byProject[admitted.project.token] = admitted
            }
        }
        for (hash, appID) in try directory.writeKeys() { apps.byWriteKey[hash] = byID[appID] }
        return apps
    }
}
