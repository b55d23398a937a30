internal import CountersignCore
internal import CountersignJOSE
internal import GatewayHTTP
internal import GatewayModel

/// Responses in the formats that existing clients decode.
///
/// Clients count a 5xx with objects in `errors` as a failed try of the event, and retry any other 5xx without limit.
/// Therefore every 5xx has strings in `errors`. 402, 403 and 3xx are never sent, because clients treat them as success.
enum BloomreachAnswer {
    static func failure(
        _ status: Int, _ message: String, _ request: HTTPRequest, authError: AuthErrorBody? = nil
    ) -> HTTPResponse {
        var errors: JSONValue = [.string(message)]
        if status == 404 {
            errors = [["code": 404, "description": .string(message), "message": .string(message)]]
        }
        var body = Array(#"{"success":false,"error":"#.utf8)
        JSONValue.write(message, to: &body)
        body.append(contentsOf: #","errors":"#.utf8)
        errors.write(to: &body)
        if let authError {
            body.append(contentsOf: #","auth_error":"#.utf8)
            authError.write(to: &body)
        }
        body.append(contentsOf: #","request_id":"\#(request.id)"}"#.utf8)
        let response = HTTPResponse.json(status, body)
        guard status == 401 else { return response }
        let challenge = authError.map {
            #"Bearer error="invalid_token", error_description="\#(($0.report.code ?? .decodingError).reason)""#
        }
        return response.with("WWW-Authenticate", challenge ?? #"Token realm="countersign""#)
    }

    static func rejection(_ error: AuthErrorBody, _ request: HTTPRequest) -> HTTPResponse {
        let code = error.report.code ?? .decodingError
        return failure(401, "\(code.summary) \(code.fix)", request, authError: error)
    }

    static func failure(_ failure: StoreFailure, _ request: HTTPRequest) -> HTTPResponse {
        Self.failure(503, failure.summary + "; nothing was stored, send it again", request)
            .with("Retry-After", String(failure.retryAfterSeconds))
    }

    /// Sends 503, because clients count a 429 as a failed try of an event, and delete an event after 403.
    static func overLimit(_ rejection: HTTPResponse, _ request: HTTPRequest) -> HTTPResponse {
        let why =
            rejection.status == 403
            ? "an operator of this project has blocked this customer" : "too many requests for this project"
        var response = failure(503, why + "; nothing was stored, send it again", request)
        response.code = rejection.code
        response.headers += rejection.headers.filter { $0.name != "Content-Type" }
        return response
    }

    static func unreadable(_ failure: StoreFailure, _ request: HTTPRequest) -> HTTPResponse {
        let why =
            failure.reason == .overloaded
            ? "too many requests are waiting to read customers" : "the gateway cannot read its storage"
        var response = Self.failure(503, why + "; try again", request)
            .with("Retry-After", String(failure.retryAfterSeconds))
        response.code = failure.code
        return response
    }

    /// `{"success":true}` with additional members.
    static func success(_ members: [(name: String, json: [UInt8])] = []) -> HTTPResponse {
        var body = Array(#"{"success":true"#.utf8)
        for (name, json) in members {
            body.append(UInt8(ascii: ","))
            JSONValue.write(name, to: &body)
            body.append(UInt8(ascii: ":"))
            body.append(contentsOf: json)
        }
        body.append(UInt8(ascii: "}"))
        return .json(200, body)
    }
}
