internal import CountersignLocations

protocol MutableSettings: AnyObject {
    var configuration: LocationConfiguration { get }

    func change(_ change: (inout LocationConfiguration) -> Void)
}

/// Access to settings, in a draft or in a running instance.
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
