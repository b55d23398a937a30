package enum Principal {
    case device
    /// An OAuth client without a user (RFC 6749, section 4.4): the app's own backend.
    case server
}
