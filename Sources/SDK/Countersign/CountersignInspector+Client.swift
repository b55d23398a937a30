extension CountersignInspector {
    /// Starts observing a client. The inspector retains the client.
    ///
    /// - Parameter client: The client to observe.
    public convenience init(_ client: CountersignClient) {
        self.init(client.pipeline) {
            let userID = client.userID
            return (userID, await client.tokens.token(of: UserKey(userID)))
        }
    }
}
