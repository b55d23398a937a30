internal import CountersignCore
internal import Foundation

/// The customer's IDs: those set by the app, and a random cookie. `anonymize` replaces the cookie and removes the rest.
struct BloomreachCustomer: Codable, Sendable, Equatable {
    static let cookieName = "cookie"

    var cookie: String
    var ids: [String: String] = [:]

    static func anonymous() -> BloomreachCustomer {
        BloomreachCustomer(cookie: UUID().uuidString)
    }

    /// The IDs and the cookie, as sent in requests.
    var identifiers: [String: String] {
        ids.merging([Self.cookieName: cookie]) { _, cookie in cookie }
    }

    var json: JSONValue { .object(JSONObject(identifiers.mapValues { .string($0) })) }

    // The synthesized operator compares strings by Unicode equivalence, which may equate two different customers.
    static func == (left: BloomreachCustomer, right: BloomreachCustomer) -> Bool {
        left.identifiers.isSame(as: right.identifiers)
    }
}

extension [String: String] {
    /// Compares names and values byte for byte.
    func isSame(as other: [String: String]) -> Bool {
        func bytes(_ ids: [String: String]) -> Set<[[UInt8]]> {
            Set(ids.map { [Array($0.key.utf8), Array($0.value.utf8)] })
        }
        return bytes(self) == bytes(other)
    }
}

/// The current customer, in memory and in a file. After a change, the recorder writes the file before new events.
final class CustomerRecord: Sendable {
    private struct State {
        var customer: BloomreachCustomer
        /// The number of changes, to detect responses about earlier IDs.
        var generation = 0
    }

    private let state: Lock<State>
    private let recorder: Recorder

    init(_ stored: BloomreachCustomer?, recorder: Recorder) {
        self.recorder = recorder
        state = Lock(State(customer: stored ?? .anonymous()))
        if stored == nil { save() }
    }

    /// Returns nil for a missing or damaged file. Throws `not_stored` if the file cannot be read now, such as before
    /// the device's first unlock. Nil would make the caller overwrite the stored customer with a new one.
    static func read(
        _ file: SlotFile, directory: URL, log: CountersignLog?
    ) throws(CountersignError) -> BloomreachCustomer? {
        let data: Data
        switch file.content {
        case .value(let bytes): data = Data(bytes)
        case .unreadable: data = Data()
        case .missing:
            let former = formerPath(directory)
            if let content = FileManager.default.contents(atPath: former) {
                data = content
            } else if FileManager.default.fileExists(atPath: former) {
                throw unreadable
            } else {
                return nil
            }
        case .inaccessible: throw unreadable
        }
        let stored = try? JSONDecoder().decode(BloomreachCustomer.self, from: data)
        if stored == nil { log?(.warning, "customer file is damaged, a new customer is used", [:]) }
        return stored
    }

    private static var unreadable: CountersignError {
        CountersignError(.notStored, "the customer's ids cannot be read now; configure again later")
    }

    static func file(_ directory: URL) -> SlotFile {
        SlotFile(path: directory.appendingPathComponent("customer").path)
    }

    /// The file in earlier versions.
    static func formerPath(_ directory: URL) -> String {
        directory.appendingPathComponent("customer.json").path
    }

    var current: (customer: BloomreachCustomer, generation: Int) {
        state.withLock { ($0.customer, $0.generation) }
    }

    /// Returns the changed customer, and whether it differs from the previous one.
    func change(
        _ body: (inout BloomreachCustomer) -> Void
    ) -> (customer: BloomreachCustomer, isAnother: Bool) {
        let result = state.withLock { state -> (BloomreachCustomer, Bool) in
            let before = state.customer
            body(&state.customer)
            guard state.customer != before else { return (before, false) }
            state.generation += 1
            return (state.customer, true)
        }
        if result.1 { save() }
        return result
    }

    func save() {
        recorder.saveIdentity { _ in (try? JSONEncoder().encode(current.customer)).map { Array($0) } }
    }
}
