package import CountersignCore
package import GatewayModel

/// The gateways that share a database, and the state they agree on.
///
/// A gateway accepts requests only if it has read the changes of others within ``ClusterRules/freshMilliseconds``. So a
/// change is effective everywhere once each gateway has read it or that time has passed.
package protocol Cluster: Sendable {
    /// The state of all gateways, including gateways that ended unexpectedly.
    func status() throws(GatewayError) -> ClusterStatus

    /// Returns once each gateway has read all changes committed before this call, or stopped accepting requests.
    func waitForGateways()

    /// Changes small shared values (notes) with these names in an exclusive transaction. Notes expire after
    /// ``ClusterNote/Kind/keptMilliseconds``.
    func change<Value>(
        _ names: [ClusterNote.Name], _ body: (inout [ClusterNote.Name: JSONValue]) -> Value
    ) throws(GatewayError) -> Value

    /// `now` is the gateway's own clock, in milliseconds since 1970, for comparison with the database's.
    func makeMember(
        _ identity: GatewayIdentity, now: @escaping @Sendable () -> Int64
    ) -> any ClusterMember

    func makeChannel(id: String) -> any ClusterChannel
}

/// A gateway's membership in its cluster, from ``start(_:)`` to ``stop()``.
package protocol ClusterMember: AnyObject, Sendable {
    /// Starts a heartbeat every second. Throws `storage` when the first one fails.
    func start(_ work: ClusterMemberWork) throws(GatewayError)

    /// Publishes the gateway's URLs, once it listens.
    func announce(url: String, adminURL: String)

    /// Whether the changes of other gateways are known. If false, the gateway must not accept requests.
    var isCurrent: Bool { get }

    /// The number of live gateways, including this one.
    var gateways: Int { get }

    /// The last heartbeat; nil before the first.
    var lastBeat: ClusterBeat? { get }

    /// Whether this gateway now has this duty, which one gateway has at a time. False without a database connection.
    func has(_ duty: ClusterDuty) -> Bool

    func stop()
}

package struct ClusterBeat: Sendable {
    /// Milliseconds since the gateway last began to read the changes of other gateways.
    package let ageMilliseconds: Int64
    /// The gateway's clock minus the database's, in milliseconds.
    package let clockOffsetMilliseconds: Int64
    /// The age of the oldest transaction that readers of events wait for, in milliseconds; 0 without one.
    package let readerLagMilliseconds: Int64

    package init(ageMilliseconds: Int64, clockOffsetMilliseconds: Int64, readerLagMilliseconds: Int64) {
        self.ageMilliseconds = ageMilliseconds
        self.clockOffsetMilliseconds = clockOffsetMilliseconds
        self.readerLagMilliseconds = readerLagMilliseconds
    }
}

/// The duties and callbacks of a cluster member.
package struct ClusterMemberWork: Sendable {
    package enum Report: Sendable, Equatable {
        /// The gateway has not read the changes of others for too long, and rejects requests.
        case cutOff(String)
        /// The gateway has read the changes of others again, and accepts requests.
        case back
        /// The clocks differ too much. The value is the gateway's clock minus the database's, in milliseconds.
        case clockDiffers(Int64)
    }

    package let duties: Set<ClusterDuty>
    /// Reads the changes of other gateways. If it throws, the heartbeat has failed.
    package let refresh: @Sendable () throws -> Void
    /// Returns the gateway's traffic of the last minute.
    package let traffic: @Sendable () -> GatewayTraffic
    /// Called once when a gateway is cut off, connected again, or its clock begins to differ.
    package let report: @Sendable (Report) -> Void

    package init(
        duties: Set<ClusterDuty> = Set(ClusterDuty.allCases),
        refresh: @escaping @Sendable () throws -> Void,
        traffic: @escaping @Sendable () -> GatewayTraffic = { GatewayTraffic() },
        report: @escaping @Sendable (Report) -> Void
    ) {
        self.duties = duties
        self.refresh = refresh
        self.traffic = traffic
        self.report = report
    }
}
