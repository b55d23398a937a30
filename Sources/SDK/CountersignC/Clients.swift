internal import CCountersign
internal import CountersignCore
internal import CountersignDelivery
internal import CountersignTransport
internal import Foundation

/// The open clients, by handle. Numbers are never reused, so that a closed client's handle stays invalid.
enum Clients {
    private struct State {
        var last: UInt = 0
        var open: [UInt: ClientHandle] = [:]
    }

    private static let state = Lock(State())
    /// The process of the first access. A forked child lacks its threads, and may inherit a locked `state`.
    private static let process = getpid()

    /// On failure returns nil and an error, freed by the caller.
    static func open(
        _ configuration: Text, _ makeCallbacks: (_ keepsTexts: Bool) -> Callbacks,
        _ error: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?,
        _ errorLength: UnsafeMutablePointer<Int>?,
        _ make: (Arguments, Callbacks) throws(CountersignError) -> any Mode
    ) -> OpaquePointer? {
        do throws(CountersignError) {
            if process != getpid() {
                throw CountersignError(
                    .forked,
                    "the process was forked after a client was opened; open clients after the fork, or call exec"
                )
            }
            guard var members = JSONDocument.object(configuration.array) else {
                throw CountersignError(.invalidConfiguration, "the configuration must be a JSON object")
            }
            let keepsTexts = try Arguments(members).configuration.bool("keepsTexts") ?? false
            members["keepsTexts"] = nil
            if [nil, .null].contains(members["context"]) { members["context"] = [:] }
            if var context = members["context"]?.object {
                context["library"] = context["library"] ?? "countersign-c"
                members["context"] = .object(context)
            }
            let callbacks = makeCallbacks(keepsTexts)
            let client: ClientHandle
            do throws(CountersignError) {
                client = ClientHandle(try make(Arguments(members), callbacks), callbacks)
            } catch {
                // The caller may free the callbacks' context on return.
                callbacks.drain()
                throw error
            }
            return state.withLock { state in
                state.last += 1
                state.open[state.last] = client
                return OpaquePointer(bitPattern: state.last)
            }
        } catch let failure {
            guard let error else { return nil }
            withText(ErrorJSON.members(failure), isKept: true) { text, length in
                error.pointee = UnsafeMutablePointer(mutating: text)
                errorLength?.pointee = length
            }
            return nil
        }
    }

    static func with(
        _ handle: OpaquePointer?, _ body: (ClientHandle) -> countersign_status
    ) -> countersign_status {
        find(handle) { $0.open[$1] }.map(body) ?? missing(handle)
    }

    static func close(_ handle: OpaquePointer?, _ done: ResultCallback) -> countersign_status {
        guard let client = find(handle, { $0.open.removeValue(forKey: $1) }) else { return missing(handle) }
        client.close(done)
        return COUNTERSIGN_OK
    }

    private static func find(
        _ handle: OpaquePointer?, _ take: (inout State, UInt) -> ClientHandle?
    ) -> ClientHandle? {
        guard let handle, process == getpid() else { return nil }
        return state.withLock { take(&$0, UInt(bitPattern: handle)) }
    }

    private static func missing(_ handle: OpaquePointer?) -> countersign_status {
        handle == nil || process == getpid() ? COUNTERSIGN_CLOSED : COUNTERSIGN_FORKED
    }
}

extension CountersignError.Code {
    static let forked = Self(rawValue: "forked")
    static let invalidArgument = Self(rawValue: "invalid_argument")
}
