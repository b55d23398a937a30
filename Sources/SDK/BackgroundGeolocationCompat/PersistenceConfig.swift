internal import CountersignLocations

/// The settings of storage.
public final class PersistenceConfig: SettingsPart {
    static var path: WritableKeyPath<LocationConfiguration, LocationConfiguration.Persistence> {
        \.persistence
    }
    var settings: Settings

    init(_ settings: Settings) {
        self.settings = settings
    }

    /// Maximum age of a waiting record, in days; -1, the default, for 30. With Transistorsoft's default of one day, a
    /// token rejected over a weekend would lose data. A change after `ready` applies at the next start.
    public var maxDaysToPersist: Int {
        get { value.maxDaysToPersist }
        set { value.maxDaysToPersist = newValue }
    }

    /// Maximum number of waiting records; the newest are kept. 0 stores nothing, -1 means 100,000. A change after
    /// `ready` applies at the next start, except that 0 applies at once.
    public var maxRecordsToPersist: Int {
        get { value.maxRecordsToPersist }
        set { value.maxRecordsToPersist = newValue }
    }

    /// The order of sending: `"ASC"` for oldest first, `"DESC"` for newest first.
    public var locationsOrderDirection: String {
        get { value.locationsOrderDirection.rawValue }
        set { value.locationsOrderDirection = .init(rawValue: newValue) }
    }

    /// Members added to each record's `extras`.
    public var extras: [String: Any] {
        get { plain(value.extras) }
        set { value.extras = json(newValue) }
    }

    /// JSON with placeholders such as `<%= latitude %>`; empty for the default shape.
    public var locationTemplate: String {
        get { value.locationTemplate }
        set { value.locationTemplate = newValue }
    }

    /// The format of timestamps: `"iso"`, or `"epoch"` for milliseconds since 1970.
    public var timestampFormat: String {
        get { value.timestampFormat.rawValue }
        set { value.timestampFormat = .init(rawValue: newValue) }
    }
}
