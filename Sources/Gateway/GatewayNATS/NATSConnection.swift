internal import CNATS
internal import CountersignCore
internal import Foundation
package import GatewayDelivery
package import GatewayModel

/// A connection to NATS through its C library, without automatic reconnection. After an error, `StreamWay` closes the
/// connection and opens a new one.
package final class NATSConnection: StreamConnection {
    /// The time limit for connecting, for writing, and for responses of the JetStream API.
    private static let timeoutMilliseconds: Int64 = 5_000
    /// The library closes the connection if no response to a ping arrives before the next ping is due.
    private static let pingIntervalMilliseconds: Int64 = 10_000

    private let connection: OpaquePointer
    private let answers: OpaquePointer
    private let inbox: String
    private var isOpen = true
    /// Published messages that are not freed yet. Freeing a message wakes a thread of the library, which costs more
    /// than publishing, so messages are freed in batches.
    private var written: [OpaquePointer] = []

    /// Tries the addresses until one connects and authenticates. Throws the failure of the last address.
    package convenience init(to settings: StreamSettings) throws(StreamError) {
        var failure = StreamError(.cannotConnect, "the stream has no address")
        var made: OpaquePointer?
        // Shuffled to distribute gateways among the servers.
        for address in settings.addresses.shuffled() where made == nil {
            do throws(StreamError) {
                made = try Self.connect(to: address, for: settings)
            } catch {
                failure = error
            }
        }
        guard let made else { throw failure }
        try self.init(over: made)
    }

    private init(over made: OpaquePointer) throws(StreamError) {
        connection = made
        var inbox: UnsafeMutablePointer<natsInbox>?
        var answers: OpaquePointer?
        var status = natsInbox_Create(&inbox)
        self.inbox = inbox.map { String(cString: $0) } ?? ""
        natsInbox_Destroy(inbox)
        if status == NATS_OK { status = natsConnection_SubscribeSync(&answers, made, self.inbox + ".*") }
        guard status == NATS_OK, let answers else {
            natsConnection_Destroy(made)
            throw Self.error(status)
        }
        self.answers = answers
        // The library drops responses beyond this limit, so the limit exceeds the messages of a publish window.
        natsSubscription_SetPendingLimits(answers, Int32(4 * PublishWindow.mostMessages), -1)
    }

    deinit {
        close()
    }

    private static func connect(to address: String, for settings: StreamSettings) throws(StreamError)
        -> OpaquePointer
    {
        let options = try options(for: settings, address)
        defer { natsOptions_Destroy(options) }
        var made: OpaquePointer?
        let status = natsConnection_Connect(&made, options)
        // The library reads the credential files while it connects. For an unreadable file, it returns `NATS_ERR`.
        let hasFiles = settings.credentialsFile != nil || settings.seedFile != nil
        try check(status, status == NATS_ERR && hasFiles ? .rejected : .connection)
        guard let made else { throw StreamError(.cannotConnect, "no connection was made") }
        return made
    }

    private static func options(
        for settings: StreamSettings, _ address: String
    ) throws(StreamError) -> OpaquePointer {
        var made: OpaquePointer?
        try check(natsOptions_Create(&made))
        guard let options = made else { throw StreamError(.cannotConnect, "no memory for a connection") }
        do throws(StreamError) {
            try check(natsOptions_SetURL(options, address))
            try check(natsOptions_SetName(options, "countersign"))
            try check(natsOptions_SetTimeout(options, timeoutMilliseconds))
            try check(natsOptions_SetPingInterval(options, pingIntervalMilliseconds))
            try check(natsOptions_SetMaxPingsOut(options, 1))
            try check(natsOptions_SetAllowReconnect(options, false))
            try check(natsOptions_SetWriteDeadline(options, timeoutMilliseconds))
            // Without the expected name, the library accepts a certificate for any name, unless it was built
            // with NATS_FORCE_HOST_VERIFICATION. Also set for nats://, because the library switches to TLS if
            // the server requires it.
            try check(natsOptions_SetExpectedHostname(options, host(of: address)), .tls)
            if address.hasPrefix("tls:") || settings.authorityFile != nil {
                try check(natsOptions_SetSecure(options, true), .tls)
            }
            if let file = settings.authorityFile {
                try check(natsOptions_LoadCATrustedCertificates(options, file), .tls)
            }
            if let file = settings.credentialsFile {
                try check(natsOptions_SetUserCredentialsFromFiles(options, file, nil), .rejected)
            }
            if let nkey = settings.nkey, let file = settings.seedFile {
                try check(natsOptions_SetNKeyFromSeed(options, nkey, file), .rejected)
            }
            return options
        } catch {
            natsOptions_Destroy(options)
            throw error
        }
    }

    /// The host of an address. Removes the brackets of an IPv6 address, because certificates have none.
    private static func host(of address: String) throws(StreamError) -> String {
        let host = (URLComponents(string: address)?.host ?? "").trimmingCharacters(in: ["[", "]"])
        guard !host.isEmpty else { throw StreamError(.tls, "an address of the stream names no host") }
        return host
    }

    package func close() {
        guard isOpen else { return }
        isOpen = false
        freeWritten()
        natsSubscription_Destroy(answers)
        natsConnection_Destroy(connection)
    }

    package func request(_ subject: String, _ body: [UInt8]) throws(StreamError) -> [UInt8] {
        var reply: OpaquePointer?
        let status = body.withUnsafeBytes {
            natsConnection_Request(
                &reply, connection, subject, $0.baseAddress, Int32(body.count), Self.timeoutMilliseconds)
        }
        if status == NATS_NO_RESPONDERS {
            throw StreamError(
                .noStreams,
                "the servers have no JetStream for this account; enable it there, or use another account")
        }
        try checkRights(status)
        try Self.check(status)
        defer { natsMsg_Destroy(reply) }
        return Self.data(reply)
    }

    package func publish(_ message: StreamMessage, number: UInt64?) throws(StreamError) {
        var made: OpaquePointer?
        let reply = number.map { "\(inbox).\($0)" }
        var status = message.body.withUnsafeBytes { body in
            natsMsg_Create(&made, message.subject, reply, body.baseAddress, Int32(body.count))
        }
        try Self.check(status)
        if let made { written.append(made) }
        for header in message.headers where status == NATS_OK {
            status = natsMsgHeader_Set(made, header.name, header.value)
        }
        if status == NATS_OK { status = natsConnection_PublishMsg(connection, made) }
        if status == NATS_MAX_PAYLOAD {
            throw StreamError(
                .tooLarge,
                "an event of \(message.body.count) bytes is too large for the servers; raise max_payload there"
            )
        }
        try Self.check(status)
    }

    package func answer(withinMilliseconds milliseconds: Int) throws(StreamError) -> StreamAnswer? {
        freeWritten()
        var found: OpaquePointer?
        let status = natsSubscription_NextMsg(&found, answers, Int64(milliseconds))
        if status == NATS_TIMEOUT {
            if natsConnection_IsClosed(connection) { throw Self.error(NATS_CONNECTION_CLOSED) }
            try checkRights(status)
            return nil
        }
        try Self.check(status)
        defer { natsMsg_Destroy(found) }
        guard let subject = natsMsg_GetSubject(found).map({ String(cString: $0) }),
            let number = subject.split(separator: ".").last.flatMap({ UInt64($0) })
        else { return StreamAnswer(number: 0, body: nil) }
        return StreamAnswer(number: number, body: natsMsg_IsNoResponders(found) ? nil : Self.data(found))
    }

    private func freeWritten() {
        for message in written { natsMsg_Destroy(message) }
        written.removeAll(keepingCapacity: true)
    }

    /// Throws `rejected` if a request timed out because it is forbidden, which only the library's last error shows.
    private func checkRights(_ status: natsStatus) throws(StreamError) {
        var text: UnsafePointer<CChar>?
        if status == NATS_TIMEOUT, natsConnection_GetLastError(connection, &text) == NATS_NOT_PERMITTED {
            throw Self.error(NATS_NOT_PERMITTED)
        }
    }

    private static func data(_ message: OpaquePointer?) -> [UInt8] {
        guard let data = natsMsg_GetData(message) else { return [] }
        return Array(UnsafeRawBufferPointer(start: data, count: Int(natsMsg_GetDataLength(message))))
    }

    private static func check(
        _ status: natsStatus, _ code: StreamError.Code = .connection
    ) throws(StreamError) {
        if status != NATS_OK { throw error(status, code) }
    }

    /// The library's detailed message is not used, because it may contain credentials.
    private static func error(_ status: natsStatus, _ code: StreamError.Code = .connection) -> StreamError {
        let text = natsStatus_GetText(status).map { String(cString: $0) } ?? "failed"
        return switch status {
        case NATS_NO_SERVER, NATS_ADDRESS_MISSING:
            StreamError(.cannotConnect, "no server answers at the stream's addresses: \(text)")
        case NATS_NOT_PERMITTED:
            StreamError(
                .rejected,
                "the stream's user lacks permissions: it must be allowed to publish under the stream's subjects and $JS.API.>, and to subscribe to _INBOX.>"
            )
        case NATS_CONNECTION_AUTH_FAILED:
            StreamError(.rejected, "the servers reject the stream's credentials: \(text)")
        case NATS_SSL_ERROR, NATS_SECURE_CONNECTION_WANTED, NATS_SECURE_CONNECTION_REQUIRED:
            StreamError(.tls, "no TLS with the servers: \(text); check tls:// and the CA file")
        default:
            switch code {
            case .rejected: StreamError(.rejected, "the file of the credentials cannot be used: \(text)")
            case .tls: StreamError(.tls, "the CA file cannot be used: \(text)")
            default: StreamError(.connection, "the connection to NATS failed: \(text)")
            }
        }
    }
}
