extension CountersignInspector {
    /// Starts observing the queue of a client for Bloomreach Engagement, whose users are projects and whose tokens
    /// are API keys. The inspector retains the client.
    ///
    /// - Parameter client: The client to observe.
    public convenience init(_ client: BloomreachClient) {
        self.init(client.pipeline) { withExtendedLifetime(client) { (nil, nil) } }
    }
}
