extension CountersignInspector {
    /// Begins to listen. It holds the client for as long as it is there itself.
    ///
    /// - Parameter client: Whom to look at.
    public convenience init(_ client: CountersignClient) {
        self.init(client.pipeline) {
            let userID = client.userID
            return (userID, await client.tokens.token(of: UserKey(userID)))
        }
    }
}
