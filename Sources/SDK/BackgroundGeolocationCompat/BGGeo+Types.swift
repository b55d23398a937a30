public import CountersignDelivery
internal import CountersignLocations

// The names in the vendor's Swift interface.
extension BGGeo {
    /// The type of this name in the module.
    public typealias Config = BackgroundGeolocationCompat.Config
    /// The type of this name in the module.
    public typealias HttpConfig = BackgroundGeolocationCompat.HttpConfig
    /// The type of this name in the module.
    public typealias AuthorizationConfig = BackgroundGeolocationCompat.AuthorizationConfig
    /// The type of this name in the module.
    public typealias AuthorizationStrategy = BackgroundGeolocationCompat.AuthorizationStrategy
    /// The type of this name in the module.
    public typealias PersistenceConfig = BackgroundGeolocationCompat.PersistenceConfig
    /// The type of this name in the module.
    public typealias AuthorizationEvent = BackgroundGeolocationCompat.AuthorizationEvent
    /// The type of this name in the module.
    public typealias HttpEvent = BackgroundGeolocationCompat.HttpEvent
    /// The type of this name in the module.
    public typealias LocationEvent = BackgroundGeolocationCompat.LocationEvent
    /// The type of this name in the module.
    public typealias EventSubscription = BackgroundGeolocationCompat.EventSubscription

    /// The waiting records, see `BGGeo.store`.
    public struct DataStore: Sendable {
        private let geo: BGGeo

        init(_ geo: BGGeo) {
            self.geo = geo
        }

        /// The number of records. The vendor's property is synchronous and blocks the thread.
        ///
        /// - Throws: If `ready` was not called or the store cannot be read.
        public var count: Int { get async throws(CountersignError) { try await geo.count() } }

        /// As `BGGeo.getLocations()`.
        ///
        /// - Returns: The records, oldest first.
        /// - Throws: If `ready` was not called or the store cannot be read.
        public nonisolated(nonsending) func all() async throws(CountersignError) -> [[String: Any]] {
            try await geo.getLocations()
        }

        /// As `BGGeo.insert(_:)`.
        ///
        /// - Parameter params: At least `coords` with `latitude` and `longitude`.
        /// - Returns: The record's `uuid`.
        /// - Throws: If the record is not stored.
        @discardableResult
        public nonisolated(nonsending) func insert(_ params: [String: Any]) async throws(CountersignError)
            -> String
        {
            try await geo.insert(params)
        }

        /// As `BGGeo.destroy(_:)`.
        ///
        /// - Parameter uuid: The record's id.
        /// - Returns: False if the record is not found.
        /// - Throws: If `ready` was not called or the store cannot be written.
        @discardableResult
        public func destroy(_ uuid: String) async throws(CountersignError) -> Bool {
            try await geo.destroy(uuid)
        }

        /// As `BGGeo.destroyLocations()`.
        ///
        /// - Throws: If `ready` was not called or the store cannot be written.
        public func destroyAll() async throws(CountersignError) { try await geo.destroyLocations() }

        /// As `BGGeo.sync()`.
        ///
        /// - Returns: The records that the server accepted.
        /// - Throws: If `ready` was not called, there is no URL, or not all records were accepted.
        @discardableResult
        public nonisolated(nonsending) func sync() async throws(CountersignError) -> [[String: Any]] {
            try await geo.sync()
        }
    }

    /// A pair of tokens and the URLs of its server. Its description omits the tokens.
    public struct TransistorToken: Sendable, CustomStringConvertible, CustomReflectable {
        /// The token for uploads.
        public let accessToken: String
        /// The refresh token.
        public let refreshToken: String
        /// As `AuthorizationConfig.expires`.
        public let expires: Int
        /// The URL for uploads.
        public let apiUrl: String
        /// The URL for token refreshes.
        public let refreshUrl: String

        /// Creates a pair, such as from a gateway's response to `/api/register`.
        ///
        /// - Parameters:
        ///   - accessToken: The token for uploads.
        ///   - refreshToken: The refresh token.
        ///   - expires: As `AuthorizationConfig.expires`.
        ///   - apiUrl: The URL for uploads.
        ///   - refreshUrl: The URL for token refreshes.
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

        /// The URL of the server, without the tokens.
        public var description: String { "TransistorToken(for \(apiUrl))" }

        /// Omits the tokens from `dump`.
        public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
    }
}
