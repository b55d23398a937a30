/// The kind of party to which a token was issued.
package enum TokenHolder {
    /// A user's device.
    case device
    /// A client that acts for itself: the app's own backend.
    case server
}
