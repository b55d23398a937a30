package enum Principal {
    case device
    /// A client that acts for itself: the app's own backend.
    case server
}
