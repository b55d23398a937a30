// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

public import CCountersign
// The functions of `countersign.h`. The compiler checks their signatures against the header.
internal import CountersignDelivery
internal import Foundation

@c @implementation
public func countersign_open_signed_user(
    _ configuration: UnsafePointer<CChar>!, _ configurationLength: Int, _ provider: countersign_provider!,
    _ event: countersign_event!, _ context: UnsafeMutableRawPointer!,
    _ error: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>!, _ errorLength: UnsafeMutablePointer<Int>!
) -> OpaquePointer! {
    Clients.open(
        Text(configuration, configurationLength),
        { Callbacks(event: event, provider: provider, context: context, keepsTexts: $0) }, error,
        errorLength, SignedUserMode.init)
}

@c @implementation
public func countersign_open_access_token(
    _ configuration: UnsafePointer<CChar>!, _ configurationLength: Int, _ event: countersign_event!,
    _ context: UnsafeMutableRawPointer!,
    _ error: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>!, _ errorLength: UnsafeMutablePointer<Int>!
) -> OpaquePointer! {
    Clients.open(
        Text(configuration, configurationLength),
        { Callbacks(event: event, provider: nil, context: context, keepsTexts: $0) }, error,
        errorLength, AccessTokenMode.init)
}

@c @implementation
public func countersign_open_bloomreach(
    _ configuration: UnsafePointer<CChar>!, _ configurationLength: Int, _ provider: countersign_provider!,
    _ event: countersign_event!, _ context: UnsafeMutableRawPointer!,
    _ error: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>!, _ errorLength: UnsafeMutablePointer<Int>!
) -> OpaquePointer! {
    Clients.open(
        Text(configuration, configurationLength),
        { Callbacks(event: event, provider: provider, context: context, keepsTexts: $0) }, error,
        errorLength, BloomreachMode.init)
}

@c @implementation
public func countersign_answer(
    _ client: OpaquePointer!, _ number: UInt64, _ token: UnsafePointer<CChar>!, _ tokenLength: Int
) -> countersign_status {
    Clients.with(client) { client in
        var text: String?
        if token != nil {
            text = Text(token, tokenLength).string
            guard text != nil else { return COUNTERSIGN_INVALID }
        }
        client.answer(number, text)
        return COUNTERSIGN_OK
    }
}

@c @implementation
public func countersign_call(
    _ client: OpaquePointer!, _ method: UnsafePointer<CChar>!, _ methodLength: Int,
    _ arguments: UnsafePointer<CChar>!, _ argumentsLength: Int, _ result: countersign_result!,
    _ context: UnsafeMutableRawPointer!
) -> countersign_status {
    Clients.with(client) { client in
        guard let method = Text(method, methodLength).string else { return COUNTERSIGN_INVALID }
        let callback = ResultCallback(result, context)
        return client.call(method, arguments == nil ? nil : Text(arguments, argumentsLength), callback)
    }
}

@c @implementation
public func countersign_close(
    _ client: OpaquePointer!, _ done: countersign_result!, _ context: UnsafeMutableRawPointer!
) -> countersign_status {
    Clients.close(client, ResultCallback(done, context))
}

@c @implementation
public func countersign_free(_ text: UnsafeMutablePointer<CChar>!) {
    free(text)
}

/// Allocated once for the lifetime of the process.
nonisolated(unsafe) private let version: UnsafePointer<CChar>? = strdup(SDKVersion.current).map {
    UnsafePointer($0)
}

@c @implementation
public func countersign_version() -> UnsafePointer<CChar>! { version }
