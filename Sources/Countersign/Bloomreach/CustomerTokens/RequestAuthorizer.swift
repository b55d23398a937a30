/// Gives a request its `Authorization`: one type for each way in which a Bloomreach server can be asked.
protocol RequestAuthorizer: Sendable {
    /// The value of the header field for one request; asked anew for each.
    func authorization(for endpoint: BloomreachEndpoint) async throws(BloomreachError) -> String
}
