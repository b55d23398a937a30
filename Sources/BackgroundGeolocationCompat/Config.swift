internal import Countersign
internal import CountersignCore
internal import CountersignLocations

/// The settings of `BGGeo`.
public final class Config {
    /// Where records go, and when.
    public var http: HttpConfig
    /// Under which token.
    public var authorization: AuthorizationConfig
    /// What is stored, and for how long.
    public var persistence: PersistenceConfig

    init(_ configuration: LocationConfiguration = LocationConfiguration()) {
        http = HttpConfig(configuration.http)
        authorization = AuthorizationConfig(configuration.authorization)
        persistence = PersistenceConfig(configuration.persistence)
    }

    func write(to configuration: inout LocationConfiguration) {
        configuration.http = http.value
        configuration.authorization = authorization.value
        configuration.persistence = persistence.value
    }
}

func json(_ values: [String: Any]) -> [String: JSONValue] { values.compactMapValues(JSONValue.init(any:)) }

func plain(_ values: [String: JSONValue]) -> [String: Any] { values.mapValues(\.any) }
