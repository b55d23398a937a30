package import CCurl

/// An easy handle of libcurl. It sends one request at a time and keeps the connection for the next.
package final class CurlHandle {
    package static let isReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    /// For libcurl's multi interface.
    package let handle: UnsafeMutableRawPointer
    private let callbacks = UnsafeMutablePointer<Callbacks>.allocate(capacity: 1)
    private var fields: UnsafeMutablePointer<curl_slist>?
    private var body = UnsafeMutableBufferPointer<UInt8>(start: nil, count: 0)

    /// Nil if libcurl cannot start.
    package init?() {
        guard Self.isReady, let handle = curl_easy_init() else { return nil }
        self.handle = handle
        callbacks.initialize(to: Callbacks())
    }

    deinit {
        curl_easy_cleanup(handle)
        release()
        callbacks.deinitialize(count: 1)
        callbacks.deallocate()
    }

    /// `schemes` are the allowed URL schemes, separated by commas. Redirects are not followed.
    /// `certificateAuthorityFile` replaces the system's certificates.
    package func reset(
        url: String, schemes: String, timeoutMilliseconds: Int, certificateAuthorityFile: String?
    ) {
        curl_easy_reset(handle)
        release()
        set(CURLOPT_URL, url)
        // libcurl would remove the path segment `..`, which may be an id. Percent-encoding cannot prevent the removal.
        set(CURLOPT_PATH_AS_IS, 1)
        set(CURLOPT_PROTOCOLS_STR, schemes)
        set(CURLOPT_FOLLOWLOCATION, 0)
        set(CURLOPT_NOSIGNAL, 1)
        set(CURLOPT_NOPROGRESS, 0)
        set(CURLOPT_TIMEOUT_MS, timeoutMilliseconds)
        if let certificateAuthorityFile { set(CURLOPT_CAINFO, certificateAuthorityFile) }
    }

    package func set(_ option: CURLoption, _ value: String) {
        _ = countersign_curl_set_string(handle, option, value)
    }

    package func set(_ option: CURLoption, _ value: Int) {
        _ = countersign_curl_set_long(handle, option, value)
    }

    /// Prepares a request, which is a POST if there is a body. `isCancelled` is called about once a second, and more
    /// often during a transfer. `mayConnect` permits or rejects the address of a new connection. `onHeader` receives
    /// status lines and header fields, and `onBody` the body in parts. Both end the request by returning false.
    package func prepare(
        headers: [String], body: [UInt8]?, isCancelled: @escaping () -> Bool,
        mayConnect: @escaping (UnsafePointer<sockaddr>, _ length: Int) -> Bool = { _, _ in true },
        onHeader: @escaping (UnsafeRawBufferPointer) -> Bool = { _ in true },
        onBody: @escaping (UnsafeRawBufferPointer) -> Bool
    ) {
        // No `Expect: 100-continue`: it costs a round trip.
        for field in headers + ["Expect:"] { fields = curl_slist_append(fields, field) }
        _ = countersign_curl_set_list(handle, CURLOPT_HTTPHEADER, fields)
        _ = countersign_curl_set_data_callback(handle, CURLOPT_WRITEFUNCTION, receiveBody)
        _ = countersign_curl_set_data_callback(handle, CURLOPT_HEADERFUNCTION, receiveHeader)
        _ = countersign_curl_set_progress_callback(handle, checkProgress)
        _ = countersign_curl_set_socket_callback(handle, openSocket)
        callbacks.pointee = Callbacks(
            isCancelled: isCancelled, mayConnect: mayConnect, onHeader: onHeader, onBody: onBody)
        for option in [
            CURLOPT_WRITEDATA, CURLOPT_HEADERDATA, CURLOPT_XFERINFODATA, CURLOPT_OPENSOCKETDATA,
        ] { _ = countersign_curl_set_pointer(handle, option, callbacks) }
        if let body {
            // libcurl does not copy the body. An empty body must have an address too.
            self.body = .allocate(capacity: max(1, body.count))
            _ = self.body.initialize(from: body)
            set(CURLOPT_POST, 1)
            _ = countersign_curl_set_offset(handle, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(body.count))
            _ = countersign_curl_set_pointer(handle, CURLOPT_POSTFIELDS, self.body.baseAddress)
        }
    }

    package func perform() -> CURLcode {
        defer { release() }
        return curl_easy_perform(handle)
    }

    private func release() {
        curl_slist_free_all(fields)
        fields = nil
        body.deallocate()
        body = UnsafeMutableBufferPointer(start: nil, count: 0)
        callbacks.pointee = Callbacks()
    }

    package var status: Int {
        var status = 0
        _ = countersign_curl_get_long(handle, CURLINFO_RESPONSE_CODE, &status)
        return status
    }

    /// 0 without `Retry-After` (RFC 9110, section 10.2.3).
    package var retryAfterSeconds: Int {
        var seconds: curl_off_t = 0
        _ = countersign_curl_get_offset(handle, CURLINFO_RETRY_AFTER, &seconds)
        return Int(seconds)
    }

    package static func text(of code: CURLcode) -> String { String(cString: curl_easy_strerror(code)) }
}

private struct Callbacks {
    var isCancelled: () -> Bool = { false }
    var mayConnect: (UnsafePointer<sockaddr>, Int) -> Bool = { _, _ in false }
    var onHeader: (UnsafeRawBufferPointer) -> Bool = { _ in false }
    var onBody: (UnsafeRawBufferPointer) -> Bool = { _ in false }

    static func of(_ context: UnsafeMutableRawPointer) -> Callbacks {
        context.assumingMemoryBound(to: Callbacks.self).pointee
    }
}

private let receiveBody: countersign_curl_data_callback = { bytes, size, count, context in
    guard let bytes, let context else { return 0 }
    let buffer = UnsafeRawBufferPointer(start: bytes, count: size * count)
    return Callbacks.of(context).onBody(buffer) ? buffer.count : 0
}

private let receiveHeader: countersign_curl_data_callback = { bytes, size, count, context in
    guard let bytes, let context else { return 0 }
    let buffer = UnsafeRawBufferPointer(start: bytes, count: size * count)
    return Callbacks.of(context).onHeader(buffer) ? buffer.count : 0
}

private let checkProgress: countersign_curl_progress_callback = { context, _, _, _, _ in
    guard let context else { return 0 }
    return Callbacks.of(context).isCancelled() ? 1 : 0
}

private let openSocket: countersign_curl_socket_callback = { context, _, address in
    guard let context, let address, let target = countersign_curl_address(address),
        Callbacks.of(context).mayConnect(target, Int(address.pointee.addrlen))
    else { return CURL_SOCKET_BAD }
    return countersign_curl_open_socket(address)
}
