package enum Principal {
    /// A user's device.
    case device
    /// A client that acts for itself: the app's own backend.
    case server
}
