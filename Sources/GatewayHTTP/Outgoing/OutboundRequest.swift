internal import CCurl
internal import Foundation
internal import GatewayModel

/// One request from the gateway to somebody else's server.
///
/// The address is judged where it is connected to, so that a name which resolves to another address the second time
/// gains nothing. Redirects are not followed and no proxy is used, because both would decide the address elsewhere.
/// What is set by less than an owner reaches the public Internet only, at ports of web servers; link-local addresses and
/// the metadata services of clouds are out of reach for all.
package struct OutboundRequest {
    let url: String
    /// Nil asks with GET, bytes are sent with POST.
    var body: [UInt8]?
    var headers: [(name: String, value: String)] = []
    /// The schemes that may be spoken, separated by commas.
    var schemes = "https"
    let allowsPrivateAddresses: Bool
    let timeoutMilliseconds: Int
    /// Bytes of the answer that are read; a longer one is a failure.
    let maximumBytes: Int

    package init(
        url: String, body: [UInt8]? = nil, headers: [(name: String, value: String)] = [],
        schemes: String = "https", allowsPrivateAddresses: Bool, timeoutMilliseconds: Int, maximumBytes: Int
    ) {
        self.url = url
        self.body = body
        self.headers = headers
        self.schemes = schemes
        self.allowsPrivateAddresses = allowsPrivateAddresses
        self.timeoutMilliseconds = timeoutMilliseconds
        self.maximumBytes = maximumBytes
    }

    package struct Answer {
        package let status: Int
        package let body: [UInt8]
    }

    /// Why there is no answer; holds no part of the URL.
    package struct Failure: Error {
        package let reason: String

        package init(reason: String) {
            self.reason = reason
        }
    }

    private static let isReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    /// Asks, and waits for the answer.
    package func perform() throws(Failure) -> Answer {
        guard Self.isReady, let handle = curl_easy_init() else {
            throw Failure(reason: "libcurl did not start")
        }
        defer { curl_easy_cleanup(handle) }
        var fields: UnsafeMutablePointer<curl_slist>?
        defer { curl_slist_free_all(fields) }
        for (name, value) in headers { fields = curl_slist_append(fields, "\(name): \(value)") }
        // No `Expect: 100-continue`: it costs a round trip.
        for field in ["User-Agent: Countersign", "Expect:"] { fields = curl_slist_append(fields, field) }
        _ = countersign_curl_set_string(handle, CURLOPT_URL, url)
        _ = countersign_curl_set_string(handle, CURLOPT_PROTOCOLS_STR, schemes)
        _ = countersign_curl_set_string(handle, CURLOPT_PROXY, "")
        _ = countersign_curl_set_long(handle, CURLOPT_FOLLOWLOCATION, 0)
        _ = countersign_curl_set_long(handle, CURLOPT_NOSIGNAL, 1)
        _ = countersign_curl_set_long(handle, CURLOPT_TIMEOUT_MS, timeoutMilliseconds)
        _ = countersign_curl_set_list(handle, CURLOPT_HTTPHEADER, fields)
        _ = countersign_curl_set_data_callback(handle, CURLOPT_WRITEFUNCTION, collect)
        _ = countersign_curl_set_socket_callback(handle, openSocket)
        if let body {
            _ = countersign_curl_set_long(handle, CURLOPT_POST, 1)
            _ = countersign_curl_set_offset(handle, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(body.count))
        }
        var exchange = Exchange(allowsPrivate: allowsPrivateAddresses, maximumBytes: maximumBytes)
        let code = withUnsafeMutablePointer(to: &exchange) { exchange in
            _ = countersign_curl_set_pointer(handle, CURLOPT_OPENSOCKETDATA, exchange)
            _ = countersign_curl_set_pointer(handle, CURLOPT_WRITEDATA, exchange)
            return (body ?? []).withUnsafeBytes { bytes in
                if body != nil {
                    _ = countersign_curl_set_pointer(handle, CURLOPT_POSTFIELDS, bytes.baseAddress)
                }
                return curl_easy_perform(handle)
            }
        }
        if let reason = exchange.refusal { throw Failure(reason: reason) }
        if exchange.isTooLong { throw Failure(reason: "its answer is longer than \(maximumBytes) bytes") }
        guard code == CURLE_OK else { throw Failure(reason: String(cString: curl_easy_strerror(code))) }
        var status = 0
        _ = countersign_curl_get_long(handle, CURLINFO_RESPONSE_CODE, &status)
        return Answer(status: status, body: exchange.received)
    }

    struct Exchange {
        let allowsPrivate: Bool
        let maximumBytes: Int
        var received: [UInt8] = []
        var isTooLong = false
        var refusal: String?

        /// Why there is no connection to an address; nil when there may be one.
        func refusal(of target: NetworkAddress?, port: UInt16) -> String? {
            guard let target, target.reach != .never else {
                return "its address is link-local or a cloud's metadata service, which is never asked"
            }
            if allowsPrivate { return nil }
            guard target.reach == .everywhere else {
                return "its address is private; an owner can allow private addresses for it"
            }
            guard [80, 443].contains(port) || port >= 1_024 else {
                return "its port is 80, 443 or at least 1024, unless an owner allows private addresses for it"
            }
            return nil
        }
    }
}

private let openSocket: countersign_curl_socket_callback = { context, _, address in
    guard let context, let address else { return CURL_SOCKET_BAD }
    let exchange = context.assumingMemoryBound(to: OutboundRequest.Exchange.self)
    guard let target = countersign_curl_address(address) else { return CURL_SOCKET_BAD }
    let length = Int(address.pointee.addrlen)
    if let refusal = exchange.pointee.refusal(
        of: NetworkAddress(target, length: length), port: NetworkAddress.port(target, length: length))
    {
        exchange.pointee.refusal = refusal
        return CURL_SOCKET_BAD
    }
    return countersign_curl_open_socket(address)
}

private let collect: countersign_curl_data_callback = { bytes, size, count, context in
    guard let bytes, let context else { return 0 }
    let exchange = context.assumingMemoryBound(to: OutboundRequest.Exchange.self)
    guard exchange.pointee.received.count + size * count <= exchange.pointee.maximumBytes else {
        exchange.pointee.isTooLong = true
        return 0
    }
    exchange.pointee.received.append(contentsOf: UnsafeRawBufferPointer(start: bytes, count: size * count))
    return size * count
}
