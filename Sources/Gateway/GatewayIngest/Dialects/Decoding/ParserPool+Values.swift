package import CountersignJSON
package import GatewayHTTP

extension ParserPool {
    package func read<Value>(_ request: HTTPRequest, _ body: (JSONNode) -> Value) -> Result<
        Value, InvalidJSON
    > {
        parsed { value throws(InvalidJSON) in try withRoot(of: request) { value = body($0) } }
    }

    /// `isolate` removes events that are not JSON. Throws the rejection of the body in the native format.
    func parseEvents<Value>(
        _ request: HTTPRequest, isolate: (inout BodyRepair) -> Void,
        _ decode: (JSONNode, DecodedEvents) throws(RejectedBody) -> Value
    ) throws(HTTPResponse) -> Value {
        let parsed = readEvents(request, isolate: isolate) { root, faults in
            Result { () throws(RejectedBody) in try decode(root, DecodedEvents(request, limits, faults)) }
        }
        let rejection: RejectedBody
        switch parsed {
        case .success(.success(let value)): return value
        case .success(.failure(let rejected)): rejection = rejected
        case .failure(let invalid): rejection = RejectedBody(code: "invalid_json", reason: invalid.reason)
        }
        throw request.failure(rejection.status, rejection.code, rejection.reason)
    }

    func readEvents<Value>(
        _ request: HTTPRequest, isolate: (inout BodyRepair) -> Void, _ body: (JSONNode, EventFaults) -> Value
    ) -> Result<Value, InvalidJSON> {
        parsed { value throws(InvalidJSON) in
            try withEvents(of: request, isolate: isolate) { value = body($0, $1) }
        }
    }

    private func parsed<Value>(
        _ parse: (inout Value?) throws(InvalidJSON) -> Void
    ) -> Result<Value, InvalidJSON> {
        var value: Value?
        do throws(InvalidJSON) { try parse(&value) } catch { return .failure(error) }
        guard let value else { preconditionFailure("a body was parsed and its root not handed over") }
        return .success(value)
    }
}
