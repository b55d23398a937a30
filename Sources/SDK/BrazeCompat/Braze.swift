internal import Countersign
internal import CountersignCore

/// The part of BrazeKit's public API that SDK Authentication needs, over a `CountersignClient`.
///
/// Code that was written for BrazeKit works with only its import changed. Events go to `/api/v3/data` of the endpoint,
/// with the current user's last known signature in `X-Braze-Auth-Signature`.
public final class Braze: Sendable {
    private struct Delegate {
        weak var value: (any BrazeSDKAuthDelegate)?
    }

    let client: CountersignClient?
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
            configuration.logger.write(.error, "the configuration does not work: \(error)")
        }
        user = User(client: client)
        client?.onSessionEvent { [weak client] event in
            switch event {
            case .began: client?.record(.sessionStart, payload: [:])
            case .ended(let duration):
                client?.record(.sessionEnd, payload: ["d": .number(Milliseconds(duration * 1_000).seconds)])
            case .appActive, .appInBackground: break
            }
        }
        client?.record(.sessionStart, payload: [:])
    }

    /// What is known of the current user.
    public let user: User

    /// Begins a session: what was paused after 50 refused signatures is tried again.
    ///
    /// Not BrazeKit's, which knows the app's coming and going on all of its systems; so does this on iOS.
    /// Elsewhere the app says it.
    public func startSession() { client?.startSession() }

    /// Ends the session. Not BrazeKit's; see `startSession()`.
    public func endSession() { client?.endSession() }

    /// Whether anything is recorded and sent. Set to false, what waits stays on disk, over later starts too, until it is set
    /// to true.
    public var enabled: Bool {
        get { client?.pipeline.isEnabled ?? false }
        set { client?.setEnabled(newValue) }
    }

    /// Removes all data of this device, the user and their signature among them, and records nothing more until
    /// `enabled` is set to true. It waits for the disk; a stored signature goes right afterwards. What a server has already
    /// stays there.
    public func wipeData() {
        client?.optOutNow()
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
        client?.track(name, properties: (properties ?? [:]).compactMapValues { JSONValue(any: $0) })
    }

    /// Records a purchase of the current user, and returns at once.
    ///
    /// - Parameters:
    ///   - productId: What was bought.
    ///   - currency: The currency's code (ISO 4217), such as `USD`.
    ///   - price: Of one piece.
    ///   - quantity: How many pieces.
    ///   - properties: As in `logCustomEvent(name:properties:)`.
    public func logPurchase(
        productId: String, currency: String, price: Double, quantity: Int = 1,
        properties: [String: Any]? = nil
    ) {
        var payload: JSONObject = [
            "pid": .string(productId), "c": .string(currency.uppercased()), "p": .number(price),
            "q": .integer(Int64(quantity)),
        ]
        let properties = (properties ?? [:]).compactMapValues { JSONValue(any: $0) }
        if !properties.isEmpty { payload["pr"] = .object(JSONObject(properties)) }
        client?.record(.purchase, payload: payload)
    }

    /// Sends everything that waits, now.
    public func requestImmediateDataFlush() {
        Task { [client] in await client?.flush() }
    }

    /// As `requestImmediateDataFlush`, and returns when that is done. Returns true if nothing is left in the queue.
    package func flush() async -> Bool {
        await client?.flush().isComplete ?? false
    }

    package func close() async {
        await client?.close()
    }
}

/// Hears of signatures that the server refuses.
public protocol BrazeSDKAuthDelegate: AnyObject {
    /// A request was refused because of its signature, or (`optional`) would be if the app required one.
    ///
    /// - Parameters:
    ///   - braze: Who sent it.
    ///   - error: What was wrong. If its user is still the current one, get a new signature from the backend and hand it
    ///     to `set(sdkAuthenticationSignature:)`.
    @MainActor
    func braze(_ braze: Braze, sdkAuthenticationFailedWithError error: Braze.SDKAuthenticationError)
}
