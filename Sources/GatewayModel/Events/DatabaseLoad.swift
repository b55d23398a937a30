package import CountersignCore

/// What a gateway and its database server have to do with each other; counts are since the gateway started.
package struct DatabaseLoad: Sendable, Equatable {
    /// Connections that somebody is using now, of those that all requests share.
    package var connectionsInUse = 0
    /// Connections that wait for somebody.
    package var connectionsIdle = 0
    /// The most that may be in use.
    package var connectionLimit = 0
    /// Groups of batches that were written again, because other transactions were in their way.
    package var writeRetries = 0
    /// What the server or the way to it reported, by the class of its SQLSTATE: two characters.
    package var errors: BytewiseDictionary<Int> = [:]
    /// Partitions of the table of events.
    package var eventPartitions = 0

    package init() {}
}
