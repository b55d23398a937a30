internal import CountersignCore
internal import Foundation
internal import GatewayModel
internal import GatewayStorage

/// Loads what commands change in the data directory as soon as they ask for it, so that a change holds when its command ends.
final class LocalChanges: Sendable {
    private static let everySeconds = 0.02

    private let signal: ChangeSignal
    private let load: @Sendable () throws -> Void
    private let queue = DispatchQueue(label: "local changes")
    private let ticker: Ticker

    /// `load` is tried again until it succeeds.
    init(_ signal: ChangeSignal, load: @escaping @Sendable () throws -> Void) {
        self.signal = signal
        self.load = load
        ticker = Ticker(queue: queue, everySeconds: Self.everySeconds)
    }

    func start() {
        ticker.start { [weak self] in self?.look() }
    }

    /// The gateway answers no requests any more: nothing is loaded, and no command waits.
    func stop() {
        ticker.stop()
        queue.sync {}
        signal.noteLoaded(.max)
    }

    private func look() {
        let asked = signal.asked
        guard asked > signal.loaded else { return }
        do {
            try load()
            signal.noteLoaded(asked)
        } catch {
            // The regular reads report the reason (``RefreshHealth``).
        }
    }
}
