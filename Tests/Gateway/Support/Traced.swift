package import GatewayModel

/// Requests whose trace is recorded.
package enum Traced {
    package static let caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    /// Returns a verified and stored request.
    package static func record() -> RequestRecord {
        var context = RequestContext()
        context.route = "/v1/batch"
        context.appID = "shop"
        context.enforcement = .required
        context.verdict = .accepted
        context.accepted = 2
        context.span = TraceSampler(ratio: 1) { 0xAB }.span(caller: TraceParent(caller))
        context.span?.began = 100
        context.span?.handlingBegan = 200
        context.span?.verifyBegan = 300
        context.span?.verifyEnded = 400
        context.span?.admissionEnded = 500
        context.span?.storeBegan = 600
        context.span?.storeEnded = 700
        context.span?.ended = 800
        return RequestRecord(
            receivedMilliseconds: 0, id: "r-1", method: "POST", path: "/v1/batch",
            clientAddress: "192.0.2.1", context: context, status: 200, bytesIn: 3, bytesOut: 5, seconds: 0.01)
    }
}
