internal import CountersignLocations

/// What is stored, and for how long.
public final class PersistenceConfig {
    private var settings: Settings

    init(_ settings: Settings) {
        self.settings = settings
    }

    var value: LocationConfiguration.Persistence {
        get { settings.configuration.persistence }
        set { settings.change { $0.persistence = newValue } }
    }

    /// Keeps what it says, in another place from now on.
    func move(to settings: Settings) {
        let value = value
        self.settings = settings
        self.value = value
    }

    /// Days that a record waits at most. -1, the default, for 30: with Transistorsoft's single day, a token that is refused
    /// over a weekend would cost data.
    public var maxDaysToPersist: Int {
        get { value.maxDaysToPersist }
        set { value.maxDaysToPersist = newValue }
    }

    /// Records that wait at most, the newest ones; 0: none is stored; -1: 100,000.
    public var maxRecordsToPersist: Int {
        get { value.maxRecordsToPersist }
        set { value.maxRecordsToPersist = newValue }
    }

    /// In which order records are sent: `"ASC"`, or `"DESC"` to begin with the last one.
    public var locationsOrderDirection: String {
        get { value.locationsOrderDirection.rawValue }
        set { value.locationsOrderDirection = .init(rawValue: newValue) }
    }

    /// Members that are put into each record's `extras`.
    public var extras: [String: Any] {
        get { plain(value.extras) }
        set { value.extras = json(newValue) }
    }

    /// JSON with `<%= latitude %>` and the like, instead of the default shape; empty for that.
    public var locationTemplate: String {
        get { value.locationTemplate }
        set { value.locationTemplate = newValue }
    }

    /// How instants are written: `"iso"`, or `"epoch"` for milliseconds since 1970.
    public var timestampFormat: String {
        get { value.timestampFormat.rawValue }
        set { value.timestampFormat = .init(rawValue: newValue) }
    }
}
