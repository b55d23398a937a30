/// Whom a request comes from, behind proxies that may be believed.
enum ClientAddress {
    /// The address that limits and logs hold against the client.
    ///
    /// Each proxy appends whom it heard from, so the list is read from its end, and only as far as its writers are
    /// trusted (RFC 7239, section 7.4 on why the rest is worth nothing).
    ///
    /// - Parameters:
    ///   - peer: The other end of the connection.
    ///   - forwarded: The values of `X-Forwarded-For`, in their order.
    ///   - proxies: Who is believed.
    /// - Returns: The last address that nobody trusted wrote.
    static func resolve(peer: String, forwarded: [String], proxies: [AddressRange]) -> String {
        func isTrusted(_ text: String) -> Bool {
            guard let address = NetworkAddress(text) else { return false }
            return proxies.contains { $0.contains(address) }
        }
        guard !proxies.isEmpty, isTrusted(peer) else { return peer }
        var client = peer
        let hops = forwarded.flatMap { $0.split(separator: ",", omittingEmptySubsequences: false) }
        for hop in hops.reversed() {
            let text = String(hop.filter { $0 != " " && $0 != "\t" })
            // What is no address was not written by a proxy that follows the rules: believe nothing before it.
            guard NetworkAddress(text) != nil else { return client }
            client = text
            if !isTrusted(text) { return client }
        }
        return client
    }
}
