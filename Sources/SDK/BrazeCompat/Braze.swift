internal import Countersign
internal import CountersignCore

/// The part of BrazeKit's public API that SDK Authentication needs, over a `CountersignClient`.
///
/// Code written for BrazeKit needs only another import. Events go to `/api/v3/data` of the endpoint. With
/// `sdkAuthentication`, their user's last known signature is in `X-Braze-Auth-Signature`.
public final class Braze: Sendable {
    private struct Delegate {
        weak var value: (any BrazeSDKAuthDelegate)?
    }

    let client: CountersignClient?
    private let delegate = Lock(Delegate())

    /// The reason why nothing is recorded, such as an invalid host name; nil if the configuration is valid.
    public let configurationProblem: String?

    /// Creates an instance, without waiting for the queue file or the network.
    ///
    /// - Parameter configuration: The configuration. Later changes to it have no effect.
    public init(configuration: Configuration) {
        do {
            client = try configuration.makeClient()
            configurationProblem = nil
        } catch {
            client = nil
            configurationProblem = "\(error)"
            configuration.logger.write(.error, "the configuration is invalid: \(error)")
        }
        user = User(client: client)
        client?.pipeline.onSessionEvent { [weak client] event in
            switch event {
            case .began: client?.record(.sessionStart, payload: [:])
            case .ended(let duration):
                client?.record(.sessionEnd, payload: ["d": .number(Milliseconds(duration * 1_000).seconds)])
            case .appActive, .appInBackground: break
            }
        }
        client?.record(.sessionStart, payload: [:])
    }

    /// The attributes of the current user.
    public let user: User

    /// Begins a session, and retries events that are paused after 50 rejected signatures.
    ///
    /// An addition to BrazeKit's API. On iOS, sessions follow the app's life cycle. Elsewhere the app calls this
    /// method.
    public func startSession() { client?.startSession() }

    /// Ends the session. An addition to BrazeKit's API, see `startSession()`.
    public func endSession() { client?.endSession() }

    /// Whether events are recorded and sent. While false, in later runs too, waiting events stay on disk.
    public var enabled: Bool {
        get { client?.pipeline.isEnabled ?? false }
        set { client?.setEnabled(newValue) }
    }

    /// Deletes all data on this device, including the user and the signature, and stops recording until `enabled` is
    /// set to true. Waits for the disk; a stored signature is deleted shortly afterwards. Does not affect the server.
    public func wipeData() {
        client?.optOutNow()
    }

    /// The delegate for rejected signatures, notified at once if the last failure is unresolved. Held weakly and
    /// called on the main actor.
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

    /// Sets the current user, for later runs too, and begins a session. For the same user only replaces the
    /// signature, unless the new one is nil.
    ///
    /// - Parameters:
    ///   - userId: The user's ID in the app's backend. An empty ID is ignored.
    ///   - sdkAuthSignature: The token that the app's backend signed for this user; nil for no token.
    public func changeUser(userId: String, sdkAuthSignature: String? = nil) {
        client?.setUser(userId, token: sdkAuthSignature)
    }

    /// Replaces the current user's signature, and sends the events that wait for it.
    ///
    /// - Parameter signature: The token that the app's backend signed.
    public func set(sdkAuthenticationSignature signature: String) {
        client?.setToken(signature)
    }

    /// Records a custom event of the current user, and returns at once.
    ///
    /// - Parameters:
    ///   - name: The event's name.
    ///   - properties: Strings, numbers, booleans, dates, and arrays and dictionaries of these. Other values are
    ///     omitted, but become null in arrays.
    public func logCustomEvent(name: String, properties: [String: Any]? = nil) {
        client?.track(name, properties: (properties ?? [:]).compactMapValues { JSONValue(any: $0) })
    }

    /// Records a purchase of the current user, and returns at once.
    ///
    /// - Parameters:
    ///   - productId: The product's ID.
    ///   - currency: The currency's code (ISO 4217), such as `USD`.
    ///   - price: The price of one item.
    ///   - quantity: The number of items.
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

    /// Sends all waiting events now.
    public func requestImmediateDataFlush() {
        Task { [client] in await client?.flush() }
    }

    /// Returns true if the queue is empty.
    package func flush() async -> Bool {
        await client?.flush().isComplete ?? false
    }

    package func close() async {
        await client?.close()
    }
}

/// A delegate that is notified of rejected signatures.
public protocol BrazeSDKAuthDelegate: AnyObject {
    /// Called when the server rejects a signature, or (`optional`) would reject it if the app required one.
    ///
    /// - Parameters:
    ///   - braze: The instance that sent the request.
    ///   - error: The error. If its user is still current, pass a new signature to
    ///     `set(sdkAuthenticationSignature:)`.
    @MainActor
    func braze(_ braze: Braze, sdkAuthenticationFailedWithError error: Braze.SDKAuthenticationError)
}
