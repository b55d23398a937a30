extension CountersignInspector {
    /// Starts observing the queue of a client for Bloomreach Engagement. The inspector shows projects as users and API
    /// keys as tokens. It retains the client.
    ///
    /// - Parameter client: The client to observe.
    public convenience init(_ client: BloomreachClient) {
        self.init(client.pipeline) { withExtendedLifetime(client) { (nil, nil) } }
    }
}
