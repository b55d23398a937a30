internal import Countersign
internal import CountersignCore

/// A client that other languages hold.
final class Session: Sendable {
    private let client: BloomreachClient
    private let provider: CallbackProvider?

    init(
        configuration text: String, ask: (@Sendable (UInt64) -> Void)?,
        event: (@Sendable (JSONValue) -> Void)?
    ) throws(CountersignError) {
        guard let map = Self.object(text) else {
            throw CountersignError(.invalidConfiguration, "the configuration must be a JSON object")
        }
        var configuration = try BloomreachConfiguration(map: map)
        provider = ask.map { CallbackProvider($0) }
        configuration.authorizationProvider = provider.map { .suspending($0) }
        if let event { configuration.log = try Self.log(map["logLevel"], event) }
        client = try BloomreachClient(configuration: configuration)
        if let event {
            client.onDeliveryFailure { error in
                event(["event": "delivery_failure", "error": Command.json(error)])
            }
        }
    }

    func answer(_ number: UInt64, _ token: String?) { provider?.answer(number, token) }

    func call(_ method: String, _ arguments: String?, _ result: @escaping @Sendable (JSONValue) -> Void) {
        guard let members = arguments.map(Self.object) ?? [:] else {
            return result(Command.failure("invalid_argument", "the arguments must be a JSON object"))
        }
        let command = Command(client: client, arguments: members)
        // What is recorded keeps the order of the calls; what is asked suspends.
        if let value = command.record(method) { return result(value) }
        Task { result(await command.ask(method)) }
    }

    func close(_ done: @escaping @Sendable () -> Void) {
        Task {
            await client.close()
            done()
        }
    }

    private static func object(_ text: String) -> [String: JSONValue]? {
        JSONDocument.object(Array(text.utf8))
    }

    private static func log(
        _ level: JSONValue?, _ event: @escaping @Sendable (JSONValue) -> Void
    ) throws(CountersignError) -> CountersignLog {
        let least: CountersignLog.Level =
            switch level {
            case .string("debug"): .debug
            case .string("info"): .info
            case nil, .null, .string("warning"): .warning
            default: throw CountersignError(.invalidConfiguration, "logLevel must be debug, info or warning")
            }
        return CountersignLog(isEnabled: { $0 >= least }) { level, message, values in
            event([
                "event": "log", "level": .string("\(level)"), "message": .string(message),
                "values": .object(values.mapValues { .string($0) }),
            ])
        }
    }
}
