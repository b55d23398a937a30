internal import CountersignLocations

protocol MutableSettings: AnyObject {
    var configuration: LocationConfiguration { get }

    func change(_ change: (inout LocationConfiguration) -> Void)
}

/// Access to the settings of a running instance, or to a draft of settings for a later instance.
final class Settings {
    private var draft: LocationConfiguration
    private let holder: (any MutableSettings)?

    init(_ draft: LocationConfiguration = LocationConfiguration()) {
        self.draft = draft
        holder = nil
    }

    init(of holder: any MutableSettings) {
        draft = LocationConfiguration()
        self.holder = holder
    }

    var configuration: LocationConfiguration { holder?.configuration ?? draft }

    func change(_ change: (inout LocationConfiguration) -> Void) {
        if let holder { holder.change(change) } else { change(&draft) }
    }
}

/// One part of the settings, such as `http`.
protocol SettingsPart: AnyObject {
    associatedtype Value

    static var path: WritableKeyPath<LocationConfiguration, Value> { get }
    var settings: Settings { get set }
}

extension SettingsPart {
    var value: Value {
        get { settings.configuration[keyPath: Self.path] }
        set { settings.change { $0[keyPath: Self.path] = newValue } }
    }

    /// Copies this part of the settings to `settings`. Later reads and writes use that copy.
    func move(to settings: Settings) {
        let value = value
        self.settings = settings
        self.value = value
    }
}
