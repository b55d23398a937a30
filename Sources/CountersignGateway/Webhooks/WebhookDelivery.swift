internal import CCurl
internal import Foundation

/// One POST to a webhook.
///
/// The address is judged where it is connected to, so that a name which resolves to another address the second time
/// gains nothing. Redirects are not followed and no proxy is used, because both would decide the address elsewhere.
struct WebhookDelivery {
    let body: [UInt8]
    let headers: [(name: String, value: String)]
    let webhook: PushWebhook
    let timeoutMilliseconds: Int

    private static let isReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    /// Delivers, and waits for the answer.
    func perform() -> WebhookSender.Outcome {
        guard Self.isReady, let handle = curl_easy_init() else { return .refused("libcurl did not start") }
        defer { curl_easy_cleanup(handle) }
        var fields: UnsafeMutablePointer<curl_slist>?
        defer { curl_slist_free_all(fields) }
        for (name, value) in headers { fields = curl_slist_append(fields, "\(name): \(value)") }
        // No `Expect: 100-continue`: it costs a round trip.
        for field in ["Content-Type: application/json", "User-Agent: Countersign", "Expect:"] {
            fields = curl_slist_append(fields, field)
        }
        _ = countersign_curl_set_string(handle, CURLOPT_URL, webhook.url)
        _ = countersign_curl_set_string(handle, CURLOPT_PROTOCOLS_STR, "http,https")
        _ = countersign_curl_set_string(handle, CURLOPT_PROXY, "")
        _ = countersign_curl_set_long(handle, CURLOPT_FOLLOWLOCATION, 0)
        _ = countersign_curl_set_long(handle, CURLOPT_NOSIGNAL, 1)
        _ = countersign_curl_set_long(handle, CURLOPT_TIMEOUT_MS, timeoutMilliseconds)
        _ = countersign_curl_set_list(handle, CURLOPT_HTTPHEADER, fields)
        _ = countersign_curl_set_long(handle, CURLOPT_POST, 1)
        _ = countersign_curl_set_offset(handle, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(body.count))
        _ = countersign_curl_set_data_callback(handle, CURLOPT_WRITEFUNCTION, discard)
        var connection = Connection(allowsPrivate: webhook.allowsPrivateAddresses)
        _ = countersign_curl_set_socket_callback(handle, openSocket)
        let code = withUnsafeMutablePointer(to: &connection) { connection in
            _ = countersign_curl_set_pointer(handle, CURLOPT_OPENSOCKETDATA, connection)
            return body.withUnsafeBytes { bytes in
                _ = countersign_curl_set_pointer(handle, CURLOPT_POSTFIELDS, bytes.baseAddress)
                return curl_easy_perform(handle)
            }
        }
        if connection.refusedPrivate {
            return .refused("its address is private; allow private addresses for this webhook to use it")
        }
        guard code == CURLE_OK else { return .refused(String(cString: curl_easy_strerror(code))) }
        var status = 0
        _ = countersign_curl_get_long(handle, CURLINFO_RESPONSE_CODE, &status)
        return (200..<300).contains(status) ? .delivered : .refused("it answered \(status)")
    }

    fileprivate struct Connection {
        let allowsPrivate: Bool
        var refusedPrivate = false
    }
}

private let openSocket: countersign_curl_socket_callback = { context, _, address in
    guard let context, let address else { return CURL_SOCKET_BAD }
    let connection = context.assumingMemoryBound(to: WebhookDelivery.Connection.self)
    if !connection.pointee.allowsPrivate {
        let target = countersign_curl_address(address).flatMap {
            NetworkAddress($0, length: Int(address.pointee.addrlen))
        }
        guard target?.isPublic == true else {
            connection.pointee.refusedPrivate = true
            return CURL_SOCKET_BAD
        }
    }
    return countersign_curl_open_socket(address)
}

/// Takes the answer's body and keeps nothing of it; the time-out ends one that never ends.
private let discard: countersign_curl_data_callback = { _, size, count, _ in size * count }
