extension CountersignInspector {
    /// Begins to listen to the queue of a client for Bloomreach Engagement, whose users are projects and whose tokens are API
    /// keys. It holds the client for as long as it is there itself.
    ///
    /// - Parameter client: Whom to look at.
    public convenience init(_ client: BloomreachClient) {
        self.init(client.pipeline) { withExtendedLifetime(client) { (nil, nil) } }
    }
}
