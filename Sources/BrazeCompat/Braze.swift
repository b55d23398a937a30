internal import Countersign
internal import CountersignCore
internal import Foundation

/// The part of BrazeKit's public API that SDK Authentication needs, over a `CountersignClient`.
///
/// Code that was written for BrazeKit works with only its import changed. Events go to `/api/v3/data` of the endpoint,
/// with the current user's last known signature in `X-Braze-Auth-Signature`.
public final class Braze: Sendable {
    private struct Delegate {
        weak var value: (any BrazeSDKAuthDelegate)?
    }

    private let client: CountersignClient?
    private let delegate = Lock(Delegate())

    /// Why nothing is recorded, such as an endpoint that is no host name; nil if all is well.
    public let configurationProblem: String?

    /// Makes an instance. Nothing waits for the disk or the network.
    ///
    /// - Parameter configuration: How it works; later changes to it have no effect.
    public init(configuration: Configuration) {
        do {
            client = try configuration.makeClient()
            configurationProblem = nil
        } catch {
            client = nil
            configurationProblem = "\(error)"
        }
    }

    /// Hears of signatures that the server refuses. Held weakly; called on the main actor, and at once if the last failure
    /// still stands.
    public var sdkAuthDelegate: (any BrazeSDKAuthDelegate)? {
        get { delegate.withLock { $0.value } }
        set {
            delegate.withLock { $0.value = newValue }
            guard newValue != nil else {
                client?.onAuthenticationFailure(nil)
                return
            }
            client?.onAuthenticationFailure { [weak self] failure in
                Task { @MainActor in
                    guard let self else { return }
                    self.sdkAuthDelegate?.braze(
                        self, sdkAuthenticationFailedWithError: SDKAuthenticationError(failure))
                }
            }
        }
    }

    /// Says who the user is from now on, also after the next start, and begins a session. For the current user only the signature is replaced.
    ///
    /// - Parameters:
    ///   - userId: The id that the app's own systems know the user by. An empty one is ignored.
    ///   - sdkAuthSignature: The token that the app's backend signed for this user; nil for none.
    public func changeUser(userId: String, sdkAuthSignature: String? = nil) {
        client?.setUser(userId, token: sdkAuthSignature)
    }

    /// Replaces the current user's signature; what waits for one is sent at once.
    ///
    /// - Parameter signature: The token that the app's backend signed.
    public func set(sdkAuthenticationSignature signature: String) {
        client?.setToken(signature)
    }

    /// Records a custom event of the current user, and returns at once.
    ///
    /// - Parameters:
    ///   - name: What happened.
    ///   - properties: More about it: strings, numbers, booleans, dates, and arrays and dictionaries of those. Anything
    ///     else is left out.
    public func logCustomEvent(name: String, properties: [String: Any]? = nil) {
        client?.track(name, properties: (properties ?? [:]).compactMapValues(JSONValue.init(any:)))
    }

    /// Sends everything that waits, now.
    public func requestImmediateDataFlush() {
        Task { [client] in await client?.flush() }
    }

    /// As `requestImmediateDataFlush`, and returns when that is done.
    ///
    /// - Returns: True if nothing is left in the queue.
    package func flush() async -> Bool {
        await client?.flush().isComplete ?? false
    }

    package func close() async {
        await client?.close()
    }
}

/// Hears of signatures that the server refuses.
@MainActor
public protocol BrazeSDKAuthDelegate: AnyObject {
    /// A request was refused because of its signature, or (`optional`) would be if the app required one.
    ///
    /// - Parameters:
    ///   - braze: Who sent it.
    ///   - error: What was wrong. If its user is still the current one, get a new signature from the backend and hand it
    ///     to `set(sdkAuthenticationSignature:)`.
    func braze(_ braze: Braze, sdkAuthenticationFailedWithError error: Braze.SDKAuthenticationError)
}
