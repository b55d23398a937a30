import CountersignCore
import Foundation

@testable import CountersignDelivery

/// The app's token provider, as a scenario describes it.
final class ScenarioProvider: Sendable {
    struct ProviderFailure: Error {}

    private struct State {
        var answers: [JSONValue]
        var calls: [JSONValue] = []
        var serial = 0
    }

    /// Seconds that the SDK waits for a provider.
    private static let patience: TimeInterval = 30

    private let clock: ScenarioClock
    private let obstacles: Obstacles
    private let state: Lock<State>

    init(_ answers: [JSONValue], clock: ScenarioClock, obstacles: Obstacles) {
        self.clock = clock
        self.obstacles = obstacles
        state = Lock(State(answers: answers))
    }

    func answer(from answers: [JSONValue]) { state.withLock { $0.answers = answers } }

    /// Returns the calls since the last use of this function.
    func takeCalls() -> JSONValue {
        .array(
            state.withLock { state in
                defer { state.calls = [] }
                return state.calls
            })
    }

    func token(_ call: JSONObject) async throws -> String? {
        let (answer, serial) = state.withLock { state -> (JSONValue, Int) in
            state.calls.append(.object(call))
            state.serial += 1
            // The last answer is repeated.
            return (state.answers.count > 1 ? state.answers.removeFirst() : state.answers[0], state.serial)
        }
        let begin = clock.uptime
        if answer["hangs"] != nil {
            // Waits until the SDK has started the timer of its time limit.
            await clock.waitForSleeper(until: begin + Self.patience)
            await obstacles.wait(.provider, until: begin + Self.patience)
            await obstacles.wait(.abandoned, until: .infinity)
            return nil
        }
        if let duration = answer["takes"]?.double {
            await obstacles.wait(.provider, until: begin + duration)
        }
        if answer["fails"] != nil { throw ProviderFailure() }
        return answer["returns"]?.string.map {
            Scenario.token($0.replacingOccurrences(of: "#", with: "\(serial)"))
        }
    }
}
