@testable import GatewayModel

/// Requests whose trace is recorded.
enum Traced {
    static let caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    /// One that was verified and stored, on a clock that began with it.
    static func record() -> RequestRecord {
        var trail = RequestTrail(
            route: "/v1/batch", appID: "shop", enforcement: .required, verdict: .accepted, accepted: 2)
        trail.span = TraceSampler(ratio: 1) { 0xAB }.span(caller: TraceParent(caller))
        trail.span?.began = 100
        trail.span?.handlingBegan = 200
        trail.span?.verifyBegan = 300
        trail.span?.verifyEnded = 400
        trail.span?.admissionEnded = 500
        trail.span?.storeBegan = 600
        trail.span?.storeEnded = 700
        trail.span?.ended = 800
        return RequestRecord(
            receivedMilliseconds: 0, id: "r-1", method: "POST", path: "/v1/batch",
            clientAddress: "192.0.2.1", trail: trail, status: 200, bytesIn: 3, bytesOut: 5, seconds: 0.01)
    }
}
