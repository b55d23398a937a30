public import CountersignDelivery
internal import CountersignLocations

// The names under which the vendor's Swift interface has them.
extension BGGeo {
    /// As the type of this name outside.
    public typealias Config = BackgroundGeolocationCompat.Config
    /// As the type of this name outside.
    public typealias HttpConfig = BackgroundGeolocationCompat.HttpConfig
    /// As the type of this name outside.
    public typealias AuthorizationConfig = BackgroundGeolocationCompat.AuthorizationConfig
    /// As the type of this name outside.
    public typealias AuthorizationStrategy = BackgroundGeolocationCompat.AuthorizationStrategy
    /// As the type of this name outside.
    public typealias PersistenceConfig = BackgroundGeolocationCompat.PersistenceConfig
    /// As the type of this name outside.
    public typealias AuthorizationEvent = BackgroundGeolocationCompat.AuthorizationEvent
    /// As the type of this name outside.
    public typealias HttpEvent = BackgroundGeolocationCompat.HttpEvent
    /// As the type of this name outside.
    public typealias LocationEvent = BackgroundGeolocationCompat.LocationEvent
    /// As the type of this name outside.
    public typealias EventSubscription = BackgroundGeolocationCompat.EventSubscription

    /// The records that wait, as `BGGeo.store` hands them out.
    public struct DataStore: Sendable {
        private let geo: BGGeo

        init(_ geo: BGGeo) {
            self.geo = geo
        }

        /// How many. The vendor's blocks for it; this one waits without holding a thread.
        ///
        /// - Throws: If the store cannot be read.
        public var count: Int { get async throws(CountersignError) { try await geo.count() } }

        /// As `BGGeo.getLocations()`.
        ///
        /// - Returns: The records, oldest first.
        /// - Throws: If the store cannot be read.
        public nonisolated(nonsending) func all() async throws(CountersignError) -> [[String: Any]] {
            try await geo.getLocations()
        }

        /// As `BGGeo.insert(_:)`.
        ///
        /// - Parameter params: At least `coords` with `latitude` and `longitude`.
        /// - Returns: The record's `uuid`.
        /// - Throws: If it is not stored.
        @discardableResult
        public nonisolated(nonsending) func insert(_ params: [String: Any]) async throws(CountersignError)
            -> String
        {
            try await geo.insert(params)
        }

        /// As `BGGeo.destroy(_:)`.
        ///
        /// - Parameter uuid: The record's id.
        /// - Returns: False if there is none.
        /// - Throws: If the store cannot be written.
        @discardableResult
        public func destroy(_ uuid: String) async throws(CountersignError) -> Bool {
            try await geo.destroy(uuid)
        }

        /// As `BGGeo.destroyLocations()`.
        ///
        /// - Throws: If the store cannot be written.
        public func destroyAll() async throws(CountersignError) { try await geo.destroyLocations() }

        /// As `BGGeo.sync()`.
        ///
        /// - Returns: The records that the server has taken.
        /// - Throws: If something stays.
        @discardableResult
        public nonisolated(nonsending) func sync() async throws(CountersignError) -> [[String: Any]] {
            try await geo.sync()
        }
    }

    /// A pair of tokens and the server that it is for.
    ///
    /// Its description leaves the tokens out.
    public struct TransistorToken: Sendable, CustomStringConvertible, CustomReflectable {
        /// The token for uploads.
        public let accessToken: String
        /// What the next one is had with.
        public let refreshToken: String
        /// As `AuthorizationConfig.expires`.
        public let expires: Int
        /// Where records go.
        public let apiUrl: String
        /// Where the next token comes from.
        public let refreshUrl: String

        /// Makes a pair, such as of what a gateway's `/api/register` has answered.
        ///
        /// - Parameters:
        ///   - accessToken: The token for uploads.
        ///   - refreshToken: What the next one is had with.
        ///   - expires: As `AuthorizationConfig.expires`.
        ///   - apiUrl: Where records go.
        ///   - refreshUrl: Where the next token comes from.
        public init(
            accessToken: String, refreshToken: String, expires: Int = -1, apiUrl: String, refreshUrl: String
        ) {
            self.accessToken = accessToken
            self.refreshToken = refreshToken
            self.expires = expires
            self.apiUrl = apiUrl
            self.refreshUrl = refreshUrl
        }

        func apply(to config: BackgroundGeolocationCompat.Config) {
            config.http.url = apiUrl
            config.authorization.strategy = .jwt
            config.authorization.accessToken = accessToken
            config.authorization.refreshToken = refreshToken
            config.authorization.refreshUrl = refreshUrl
            config.authorization.refreshPayload = ["refresh_token": "{refreshToken}"]
            config.authorization.expires = Double(expires)
        }

        /// The server, never the tokens.
        public var description: String { "TransistorToken(for \(apiUrl))" }

        /// The same, for `dump`.
        public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
    }
}
