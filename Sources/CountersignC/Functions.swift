// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

// The functions of `countersign.h`; the compiler checks them against it.
public import CCountersign
internal import Countersign
internal import CountersignCore
internal import Foundation

private func session(_ client: OpaquePointer?) -> Session? {
    client.map { Unmanaged<Session>.fromOpaque(UnsafeRawPointer($0)).takeUnretainedValue() }
}

@c @implementation
public func countersign_open(
    _ configuration: UnsafePointer<CChar>!, _ provider: countersign_provider!, _ event: countersign_event!,
    _ context: UnsafeMutableRawPointer!, _ error: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>!
) -> OpaquePointer! {
    let context = Context(pointer: context)
    let ask = provider.map { provider in
        let call = unsafeBitCast(
            provider, to: (@convention(c) @Sendable (UnsafeMutableRawPointer?, UInt64) -> Void).self)
        return { @Sendable (number: UInt64) in call(context.pointer, number) }
    }
    let events = event.map { event in
        let callback = ResultCallback(event, context.pointer)
        return { @Sendable (json: JSONValue) in callback(json) }
    }
    do throws(CountersignError) {
        let text = configuration.map { String(cString: $0) } ?? ""
        let session = try Session(configuration: text, ask: ask, event: events)
        return OpaquePointer(Unmanaged.passRetained(session).toOpaque())
    } catch let failure {
        error?.pointee = strdup(failure.description)
        return nil
    }
}

@c @implementation
public func countersign_answer(_ client: OpaquePointer!, _ number: UInt64, _ token: UnsafePointer<CChar>!) {
    session(client)?.answer(number, token.map { String(cString: $0) })
}

@c @implementation
public func countersign_call(
    _ client: OpaquePointer!, _ method: UnsafePointer<CChar>!, _ arguments: UnsafePointer<CChar>!,
    _ result: countersign_result!, _ context: UnsafeMutableRawPointer!
) {
    let callback = ResultCallback(result, context)
    guard let session = session(client), let method else { return }
    session.call(String(cString: method), arguments.map { String(cString: $0) }) { callback($0) }
}

@c @implementation
public func countersign_close(
    _ client: OpaquePointer!, _ done: countersign_result!, _ context: UnsafeMutableRawPointer!
) {
    guard let client else { return }
    let callback = ResultCallback(done, context)
    let session = Unmanaged<Session>.fromOpaque(UnsafeRawPointer(client)).takeRetainedValue()
    session.close { callback(["value": .null]) }
}

@c @implementation
public func countersign_free(_ text: UnsafeMutablePointer<CChar>!) {
    free(text)
}

/// Made once, for as long as the process lives.
nonisolated(unsafe) private let version: UnsafePointer<CChar>? = strdup(SDKVersion.current).map {
    UnsafePointer($0)
}

@c @implementation
public func countersign_version() -> UnsafePointer<CChar>! { version }
