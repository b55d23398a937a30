internal import CountersignCore
internal import GatewayModel
internal import GatewayStorage

extension AdminCall {
    static let startMembers: [JSONMember] = [
        .may("from", .choice(["start", "end"])), .may("time_ms", .milliseconds),
        .may("position", .text(longest: 64)),
    ]

    func eventStart(of appID: String, in log: any EventLog) throws -> EventStart? {
        let body = try body()
        let (from, time, position): (String?, Int64?, String?) = (
            body.value("from"), body.value("time_ms"), body.value("position")
        )
        guard [from != nil, time != nil, position != nil].filter({ $0 }).count <= 1 else {
            throw AdminProblem.invalid(
                "from", "cannot be combined: give only one of from, time_ms and position")
        }
        if let time { return .time(time) }
        if let position {
            let positions = try log.positions()
            do throws(EventPositions.Fault) {
                return .after(try positions.sequence(of: position, in: appID))
            } catch {
                throw AdminProblem(422, error.rawValue, error.reason)
            }
        }
        return from.map { $0 == "end" ? .end : .start }
    }
}
