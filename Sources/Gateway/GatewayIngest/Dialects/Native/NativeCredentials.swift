internal import CountersignCore
internal import Foundation
internal import GatewayHTTP

/// The write key and token of a native request.
struct Credentials {
    /// From `X-Write-Key` or the user name of `Authorization: Basic`; nil if the header has none.
    var writeKey: String?
    /// From `Authorization: Bearer` or `X-Countersign-Signature`.
    var user: Credential

    /// Reads the write key and the token from the header fields. Rejects two different keys or tokens.
    init(_ request: HTTPRequest) throws(HTTPResponse) {
        writeKey = request.header("x-write-key")
        user = Credential(.userToken, request.header("x-countersign-signature"))
        guard let authorization = request.headerBytes("authorization") else { return }
        let (scheme, parameter) = Self.schemeAndParameter(authorization)
        switch scheme {
        case "basic":
            guard let decoded = Data(base64Encoded: parameter),
                let name = String(validating: decoded.prefix { $0 != UInt8(ascii: ":") }, as: UTF8.self)
            else {
                throw Self.conflict(
                    request, "Authorization: Basic must hold the base64 of the key and a colon")
            }
            if let writeKey, !writeKey.utf8.elementsEqual(name.utf8) {
                throw Self.conflict(request, "the request carries two different write keys")
            }
            writeKey = name
        case "bearer":
            if let token = user.token, !token.utf8.elementsEqual(parameter.utf8) {
                throw Self.conflict(request, "the request carries two different tokens")
            }
            user = Credential(.userToken, parameter)
        default: throw Self.conflict(request, "the scheme of Authorization must be Basic or Bearer")
        }
    }

    /// The lower-case scheme and the trimmed parameter (RFC 9110, section 11.4).
    private static func schemeAndParameter(
        _ value: UnsafeBufferPointer<UInt8>
    ) -> (scheme: String, parameter: String) {
        let blank = UInt8(ascii: " ")
        let scheme = value.prefix { $0 != blank }
        var rest = value[scheme.endIndex...].drop { $0 == blank }
        while rest.last == blank { rest.removeLast() }
        return (String(decoding: scheme, as: UTF8.self).lowercased(), String(decoding: rest, as: UTF8.self))
    }

    static func unknownWriteKey(_ request: HTTPRequest) -> HTTPResponse {
        request.failure(
            401, "invalid_write_key",
            "no app has this write key; send it in X-Write-Key, as the user name of Authorization: Basic, "
                + "or as writeKey in the body"
        ).with("WWW-Authenticate", #"Basic realm="countersign""#)
    }

    private static func conflict(_ request: HTTPRequest, _ reason: String) -> HTTPResponse {
        request.failure(400, "invalid_credentials", reason)
    }
}
