internal import CountersignCore

#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif

extension OutputBuffer {
    /// Appends the status line (RFC 9112, section 4), of HTTP/1.1 for all clients (RFC 9110, section 6.2).
    mutating func appendStatus(_ status: Int) {
        append("HTTP/1.1 ")
        append(status)
        append(" ")
        append(Self.reason(status))
        append("\r\n")
    }

    private static func reason(_ status: Int) -> StaticString {
        switch status {
        case 200: "OK"
        case 201: "Created"
        case 204: "No Content"
        case 302: "Found"
        case 304: "Not Modified"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 409: "Conflict"
        case 410: "Gone"
        case 412: "Precondition Failed"
        case 413: "Content Too Large"
        case 414: "URI Too Long"
        case 415: "Unsupported Media Type"
        case 422: "Unprocessable Content"
        case 428: "Precondition Required"
        case 429: "Too Many Requests"
        case 431: "Request Header Fields Too Large"
        case 500: "Internal Server Error"
        case 501: "Not Implemented"
        case 502: "Bad Gateway"
        case 503: "Service Unavailable"
        case 504: "Gateway Timeout"
        case 505: "HTTP Version Not Supported"
        default: ""
        }
    }

    /// Appends the field `Date` (RFC 9110, sections 5.6.7 and 6.6.1).
    mutating func appendDate(secondsSince1970: Int64) {
        var seconds = time_t(secondsSince1970)
        var date = tm()
        gmtime_r(&seconds, &date)
        append("Date: ")
        append(Self.name(date.tm_wday, of: "SunMonTueWedThuFriSat"))
        append(", ")
        appendTwoDigits(date.tm_mday)
        append(" ")
        append(Self.name(date.tm_mon, of: "JanFebMarAprMayJunJulAugSepOctNovDec"))
        append(" ")
        append(Int(date.tm_year) + 1_900)
        append(" ")
        appendTwoDigits(date.tm_hour)
        append(":")
        appendTwoDigits(date.tm_min)
        append(":")
        appendTwoDigits(date.tm_sec)
        append(" GMT\r\n")
    }

    /// The name with this number in a text of names with three letters each.
    private static func name(_ number: Int32, of names: StaticString) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: names.utf8Start + 3 * Int(number), count: 3)
    }

    private mutating func appendTwoDigits(_ number: Int32) {
        if number < 10 { append("0") }
        append(Int(number))
    }

    mutating func appendChunkSize(_ size: Int) {
        append(String(size, radix: 16))
        append("\r\n")
    }
}
