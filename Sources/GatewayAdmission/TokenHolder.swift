/// Who has a token.
package enum TokenHolder {
    /// A user's device.
    case device
    /// A client of the app, for itself: the app's own backend.
    case server
}
