internal import CountersignLocations

/// What works by settings that can be changed.
protocol SettingsHolder: AnyObject {
    var configuration: LocationConfiguration { get }

    func change(_ change: (inout LocationConfiguration) -> Void)
}

/// Where settings are: in a draft, or in the instance that works.
final class Settings {
    private var draft: LocationConfiguration
    private let holder: (any SettingsHolder)?

    init(_ draft: LocationConfiguration = LocationConfiguration()) {
        self.draft = draft
        holder = nil
    }

    init(of holder: any SettingsHolder) {
        draft = LocationConfiguration()
        self.holder = holder
    }

    var configuration: LocationConfiguration { holder?.configuration ?? draft }

    func change(_ change: (inout LocationConfiguration) -> Void) {
        if let holder { holder.change(change) } else { change(&draft) }
    }
}
