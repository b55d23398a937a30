internal import CountersignBloomreach
internal import CountersignCore
internal import CountersignDelivery
internal import Foundation

extension Exponea {
    /// Starts the SDK.
    ///
    /// If the configuration cannot work, the reason is logged, the SDK does not start, and `configure` may be called
    /// again. With `advancedAuthEnabled` there must be a provider: see `authorizationProvider`.
    ///
    /// - Parameters:
    ///   - projectToken: The project's token: letters, digits and `-`.
    ///   - projectMapping: Further projects that receive copies of tracked data.
    ///   - authorization: The project's API key.
    ///   - baseUrl: The server; nil for the vendor's.
    ///   - appGroup: Has no effect, which is logged: each extension has its own queue.
    ///   - defaultProperties: Properties added to events, except push tokens and campaign clicks.
    ///   - inAppContentBlocksPlaceholders: Has no effect, which is logged: the SDK shows nothing.
    ///   - allowDefaultCustomerProperties: Whether customer updates get the default properties too; nil for yes.
    ///   - advancedAuthEnabled: Whether App Inbox requests carry customer tokens; nil for no.
    ///   - manualSessionAutoClose: Whether `trackSessionStart()` also ends an earlier session that has timed out.
    ///   - applicationID: The ID of this app in the project.
    ///   - flushingMode: When events are sent; nil for the value of `flushingMode`.
    public func configure(
        projectToken: String, projectMapping: [EventType: [ExponeaProject]]? = nil,
        authorization: Authorization, baseUrl: String? = nil, appGroup: String? = nil,
        defaultProperties: [String: any JSONConvertible]? = nil,
        inAppContentBlocksPlaceholders: [String]? = nil, allowDefaultCustomerProperties: Bool? = nil,
        advancedAuthEnabled: Bool? = nil, manualSessionAutoClose: Bool = true, applicationID: String? = nil,
        flushingMode: FlushingMode? = nil
    ) {
        configure(
            ProjectSettings(
                projectToken: projectToken, authorization: authorization, baseUrl: baseUrl,
                projectMapping: projectMapping),
            pushNotificationTracking: appGroup.map { .enabled(appGroup: $0) } ?? .disabled,
            defaultProperties: defaultProperties,
            inAppContentBlocksPlaceholders: inAppContentBlocksPlaceholders,
            flushingSetup: FlushingSetup(mode: flushingMode ?? self.flushingMode),
            allowDefaultCustomerProperties: allowDefaultCustomerProperties,
            advancedAuthEnabled: advancedAuthEnabled, manualSessionAutoClose: manualSessionAutoClose,
            applicationID: applicationID)
    }

    /// Starts the SDK with a property list: `projectToken`, `authorization` (`Token` and the API key), and the keys of
    /// `BloomreachConfiguration.init(map:)` except `flushMode` and `logLevel`. Logs ineffective keys with reasons.
    ///
    /// - Parameter plistName: The file's name in the app's bundle, with or without `.plist`.
    public func configure(plistName: String) {
        let name = plistName.hasSuffix(".plist") ? String(plistName.dropLast(".plist".count)) : plistName
        let bundles = [Bundle.main] + Bundle.allBundles
        guard let url = bundles.lazy.compactMap({ $0.url(forResource: name, withExtension: "plist") }).first
        else {
            return fail(CountersignError(.invalidConfiguration, "Configuration plist not found."))
        }
        configure(plist: url)
    }

    func configure(plist url: URL) {
        attempt { () throws(CountersignError) in
            guard let data = try? Data(contentsOf: url),
                let plist = try? PropertyListSerialization.propertyList(from: data, format: nil),
                case .object(let map) = JSONValue(any: plist)
            else {
                throw CountersignError(.invalidConfiguration, "the configuration plist cannot be read")
            }
            var configuration = try BloomreachConfiguration(map: map)
            configuration.wording = .ios
            if let provider = settings.provider { configuration.authorizationProvider = provider }
            configuration.flushPolicy = settings.flushingMode.policy
            return configuration
        }
    }

    /// Starts the SDK with a map with the keys of `BloomreachConfiguration.init(map:)`. `logLevel` has no effect.
    ///
    /// - Parameter map: Strings, numbers, booleans, and lists and maps of those.
    /// - Returns: False if the SDK is configured already. True also if it has to wait for the device's first unlock.
    /// - Throws: `CountersignError` with `invalidConfiguration` if the map cannot work; the reason is logged too.
    @discardableResult
    public func configure(map: [String: Any]) throws(CountersignError) -> Bool {
        if isConfigured { return start(nil) }
        do throws(CountersignError) {
            let members = JSONObject(map.compactMapValues { JSONValue(any: $0) })
            var configuration = try BloomreachConfiguration(map: members)
            if let provider = settings.provider { configuration.authorizationProvider = provider }
            if members["flushMode"]?.string == nil {
                configuration.flushPolicy = settings.flushingMode.policy
            }
            return try begin(configuration)
        } catch {
            fail(error)
            throw error
        }
    }

    /// Returns true if the SDK starts now or after the device's first unlock.
    @discardableResult
    func attempt(
        _ make: () throws(CountersignError) -> BloomreachConfiguration
    ) -> Bool {
        if isConfigured { return start(nil) }
        do throws(CountersignError) {
            return try begin(make())
        } catch {
            fail(error)
            return false
        }
    }

    /// Starts now, or after the device's first unlock if the customer's IDs cannot be read before the unlock. Calls of
    /// the app wait until the start.
    private func begin(_ configuration: BloomreachConfiguration) throws(CountersignError) -> Bool {
        do throws(CountersignError) {
            return start(try makeClient(configuration))
        } catch  where error.code == .notStored {
            Self.logger.log(.warning, message: "Not configured yet, retrying: \(error.detail)")
            Task { [clock = settings.clock] in
                await FirstUnlock.wait(clock: clock) { self.isConfigured || self.beginAgain(configuration) }
            }
            return true
        }
    }

    /// Returns false if the start must be retried.
    private func beginAgain(_ configuration: BloomreachConfiguration) -> Bool {
        do throws(CountersignError) {
            _ = start(try makeClient(configuration))
        } catch {
            if error.code == .notStored { return false }
            fail(error)
        }
        return true
    }

    private func makeClient(
        _ given: BloomreachConfiguration
    ) throws(CountersignError) -> BloomreachClient {
        var configuration = given
        let settings = settings
        configuration.dataDirectory = settings.dataDirectory ?? configuration.dataDirectory
        configuration.log = CountersignLog(isEnabled: { _ in Self.logger.logLevel > .none }) {
            level, text, values in
            let details = values.isEmpty ? "" : " \(values)"
            // Omits the details of warnings, because some warnings have the exact text of the vendor's SDK.
            switch level {
            case .warning: Self.logger.log(.warning, message: text)
            default: Self.logger.log(.verbose, message: text + details)
            }
        }
        return try BloomreachClient(
            configuration: configuration, transport: settings.transport, clock: settings.clock)
    }

    private func start(_ client: BloomreachClient?) -> Bool {
        if let client, start(client) { return true }
        Self.logger.log(.error, message: "Exponea SDK already configured.")
        return false
    }

    private func fail(_ error: CountersignError) {
        Self.logger.log(.error, message: "Can't create configuration: \(error.detail)")
    }

    static func mapping(
        _ mapping: [EventType: [ExponeaProject]]?, baseURL: String?
    ) throws(CountersignError) -> [BloomreachEventKind: [BloomreachProject]] {
        var result: [BloomreachEventKind: [BloomreachProject]] = [:]
        for (type, projects) in mapping ?? [:] {
            for project in projects {
                result[type.kind, default: []].append(try project.project(defaultBaseURL: baseURL))
            }
        }
        return result
    }
}
