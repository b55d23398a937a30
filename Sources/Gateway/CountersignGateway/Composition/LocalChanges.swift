internal import CountersignCore
internal import Foundation
internal import GatewayModel
internal import GatewayStorage

/// Loads changes that commands make in the data directory, so that they are in effect when the command ends.
final class LocalChanges: Sendable {
    private static let everySeconds = 0.02

    private let signal: ChangeSignal
    private let load: @Sendable () throws -> Void
    private let queue = DispatchQueue(label: "local changes")
    private let ticker: Ticker

    /// `load` is retried until it succeeds.
    init(_ signal: ChangeSignal, load: @escaping @Sendable () throws -> Void) {
        self.signal = signal
        self.load = load
        ticker = Ticker(queue: queue, everySeconds: Self.everySeconds)
    }

    func start() {
        ticker.start { [weak self] in self?.check() }
    }

    /// Stops loading and releases waiting commands. Called once the gateway answers no more requests.
    func stop() {
        ticker.stop()
        queue.sync {}
        signal.noteLoaded(.max)
    }

    private func check() {
        let asked = signal.asked
        guard asked > signal.loaded else { return }
        do {
            try load()
            signal.noteLoaded(asked)
        } catch {
            // The periodic refresh logs the reason (``RefreshHealth``).
        }
    }
}
