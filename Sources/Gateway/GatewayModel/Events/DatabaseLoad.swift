package import CountersignCore

/// Metrics of the database connection. The counters count from the gateway's start.
package struct DatabaseLoad: Sendable, Equatable {
    /// Connections of the shared pool that are in use.
    package var connectionsInUse = 0
    package var connectionsIdle = 0
    package var connectionLimit = 0
    /// Writes repeated because of conflicts with other transactions. A write stores a group of batches.
    package var writeRetries = 0
    /// Errors of the server or the connection, by the class of the SQLSTATE (two characters).
    package var errors: BytewiseDictionary<Int> = [:]
    package var eventPartitions = 0

    package init() {}
}
