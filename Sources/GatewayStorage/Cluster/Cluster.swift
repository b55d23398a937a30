package import CountersignCore
package import GatewayModel

/// The gateways that share a storage: which there are, and what they agree on.
///
/// A gateway accepts a request only if within the last ``ClusterRules/freshMilliseconds`` it has read what the others have
/// changed. So a change holds everywhere once each gateway has read it, or that time has passed.
package protocol Cluster: Sendable {
    /// The gateways that share the storage, those that ended without saying so as well, and what they share.
    func status() throws(GatewayError) -> ClusterStatus

    /// Returns when every gateway judges by what was committed before this call, or does not judge any more.
    func settle()

    /// Changes small things that gateways agree on: `body` gets what is kept under these names and has them alone, and what it
    /// leaves is kept until it is old (``ClusterNote/Kind/keptMilliseconds``). Throws `storage`.
    func change<Value>(
        _ names: [ClusterNote.Name], _ body: (inout [ClusterNote.Name: JSONValue]) -> Value
    ) throws(GatewayError) -> Value

    /// A place in the cluster for a gateway that is about to run. `now` is the gateway's own clock, in milliseconds since
    /// 1970, which is compared with the database's.
    func makeMember(
        _ identity: GatewayIdentity, now: @escaping @Sendable () -> Int64
    ) -> any ClusterMember

    /// Carries transient messages between gateways. `id` is the gateway's.
    func makeChannel(id: String) -> any ClusterChannel
}

/// One gateway's place in its cluster, from ``start(_:)`` to ``stop()``.
package protocol ClusterMember: AnyObject, Sendable {
    /// Takes the place, and shows again every second that the gateway lives. Throws `storage` when it cannot be shown now.
    func start(_ work: ClusterMemberWork) throws(GatewayError)

    /// Where clients and operators find it, once it listens.
    func announce(url: String, adminURL: String)

    /// False when changes of others may have been missed: then nothing may be accepted.
    var isCurrent: Bool { get }

    /// The gateways that live, itself included; at least 1.
    var gateways: Int { get }

    /// The last time that it showed that it lives; nil before the first.
    var lastBeat: ClusterBeat? { get }

    /// Whether this gateway has this duty now. One at a time has it; whoever lost the database has none.
    func has(_ duty: ClusterDuty) -> Bool

    /// Leaves the cluster and gives every duty back.
    func stop()
}

/// How it was when a member last showed that it lives.
package struct ClusterBeat: Sendable {
    /// How long ago it began to read what it judges by, in milliseconds.
    package let ageMilliseconds: Int64
    /// How far its clock is ahead of the database's, in milliseconds.
    package let clockOffsetMilliseconds: Int64
    /// How old the transaction is that its readers of events wait for, in milliseconds; 0 when none is open.
    package let readerLagMilliseconds: Int64

    package init(ageMilliseconds: Int64, clockOffsetMilliseconds: Int64, readerLagMilliseconds: Int64) {
        self.ageMilliseconds = ageMilliseconds
        self.clockOffsetMilliseconds = clockOffsetMilliseconds
        self.readerLagMilliseconds = readerLagMilliseconds
    }
}

/// What a member does each time that it shows that it lives.
package struct ClusterMemberWork: Sendable {
    /// What there is to say of a member.
    package enum Report: Sendable, Equatable {
        /// The gateway has not read what others changed for too long, and accepts nothing.
        case cutOff(String)
        /// It has again.
        case back
        /// The gateway's clock is ahead of the database's by so many milliseconds, or behind it.
        case clockDiffers(Int64)
    }

    /// What this gateway may be asked to do.
    package let duties: Set<ClusterDuty>
    /// Reads what others have changed. While it throws, the gateway does not count as having read it.
    package let refresh: @Sendable () throws -> Void
    /// Other gateways may have stored events.
    package let tick: @Sendable () -> Void
    /// What the gateway has judged in the last minute.
    package let traffic: @Sendable () -> GatewayTraffic
    /// Hears of each once when it begins.
    package let report: @Sendable (Report) -> Void

    package init(
        duties: Set<ClusterDuty> = Set(ClusterDuty.allCases),
        refresh: @escaping @Sendable () throws -> Void, tick: @escaping @Sendable () -> Void,
        traffic: @escaping @Sendable () -> GatewayTraffic = { GatewayTraffic() },
        report: @escaping @Sendable (Report) -> Void
    ) {
        self.duties = duties
        self.refresh = refresh
        self.tick = tick
        self.traffic = traffic
        self.report = report
    }
}
