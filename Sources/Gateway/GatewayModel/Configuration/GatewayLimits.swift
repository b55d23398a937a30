/// Limits of requests, connections and addresses.
public struct GatewayLimits: Sendable {
    /// Bytes of the request line and all header fields together; more get 431, or 414 for the line alone.
    public var headerBytes = 16 * 1024
    /// Header fields of a request; more get 431.
    public var headerFields = 100
    /// Bytes of the body, both as sent and as decompressed; more get 413.
    public var bodyBytes = 4 * 1024 * 1024
    /// Maximum ratio of the decompressed to the compressed size; more get 413. Bodies of at most 64 KiB when
    /// decompressed are exempt.
    public var compressionRatio = 100
    /// Nesting depth of JSON. A deeper event is rejected; the other events of the batch are stored.
    public var jsonDepth = 64
    /// Events of one batch; more get 413.
    public var batchEvents = 1_000
    /// Bytes of one event as JSON. A larger event is rejected; the other events of the batch are stored.
    public var eventBytes = 512 * 1024
    /// Seconds until the header of a request must be complete.
    public var headerSeconds = 10
    /// Seconds until the body of a request must be complete. A client has the same time to read a response, plus one
    /// second for each 8 KiB.
    public var bodySeconds = 30
    /// Seconds that a connection may be idle between requests.
    public var idleSeconds = 30
    /// Open connections. For a new connection beyond the limit, the gateway closes up to 32 idle connections.
    /// Without idle connections, it closes up to 32 connections of addresses that have more connections than the
    /// client's address. If it can close no other connection, the gateway closes the new one.
    public var connections = 4_096
    /// Open connections of one address (one /64 for IPv6). For a new connection beyond the limit, the gateway closes
    /// an idle connection of the address. If no connection is idle, it closes the new one. Trusted proxies are exempt.
    public var connectionsPerAddress = 256
    /// Requests a second of one address (one /64 for IPv6), with a burst of five times as many; more get 429 with
    /// `Retry-After`. All addresses of an IPv6 /48 together may send 16 times as many. 0 sets no limit. Requests from
    /// this machine are exempt, unless a proxy forwards them.
    public var requestsPerSecondPerAddress = 1_000
    /// Requests a second of one app, with a burst of five times as many; more get 429 with `Retry-After`. 0
    /// sets no limit.
    public var requestsPerSecondPerApp = 0
    /// Token requests a second of one session or client, and registrations of one address, with a burst of
    /// five times as many; more get 429 with `Retry-After`. 0 sets no limit.
    public var tokenRequestsPerSecond = 20
    /// Bytes of events that wait to be stored; more get 503 with `Retry-After`.
    public var pendingBytes = 64 * 1024 * 1024
    /// Bytes of request bodies and responses in memory, of all connections together. Beyond the limit, the gateway
    /// closes the slowest connections. If no connection is slow, requests get 503 with `Retry-After`.
    public var bodyMemoryBytes = 64 * 1024 * 1024

    /// The defaults.
    public init() {}
}
