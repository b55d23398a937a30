public import CountersignCore
internal import CountersignTransport

extension LocationClient {
    /// Returns the number of waiting records.
    ///
    /// - Returns: The number.
    /// - Throws: `CountersignError` with `storageFailed` when the store cannot be read now.
    public func count() async throws(CountersignError) -> Int {
        try await pipeline.waitingCount()
    }

    /// Returns the waiting records, oldest first.
    ///
    /// - Returns: The records as they will be sent.
    /// - Throws: `CountersignError` with `storageFailed` when the store cannot be read now.
    public func records() async throws(CountersignError) -> [JSONValue] {
        try await pipeline.waitingBodies().compactMap(JSONDocument.value)
    }

    /// Removes a waiting record.
    ///
    /// - Parameter uuid: The record's id.
    /// - Returns: False if the record is not found.
    /// - Throws: `CountersignError` with `storageFailed` when the store cannot be written now.
    @discardableResult
    public func remove(uuid: String) async throws(CountersignError) -> Bool {
        try await pipeline.removeWaiting(messageID: uuid)
    }

    /// Removes all records, also those in quarantine. Tokens stay.
    ///
    /// - Throws: `CountersignError` with `storageFailed` when the store cannot be written now.
    public func removeAll() async throws(CountersignError) {
        try await pipeline.removeAllWaiting()
    }

    /// Sends all waiting records.
    ///
    /// - Returns: The records that the server has accepted.
    /// - Throws: `CountersignError`. Unsent records stay, or are quarantined if the server rejects them permanently.
    ///   Records sent before the error are removed.
    @discardableResult
    public func sync() async throws(CountersignError) -> [JSONValue] {
        guard destination.settings.http.endpoint != nil else {
            throw CountersignError(.invalidURL, "http.url must be an http or https URL with a host")
        }
        await handover()
        let collector = destination.beginCollecting()
        let result = await pipeline.engine.flush()
        let delivered = destination.endCollecting(collector)
        if let error = Self.error(of: result) { throw error }
        return delivered.compactMap { JSONDocument.value($0.body) }
    }

    /// Returns nil if the waiting records were sent. Records stored during the flush may still wait.
    static func error(of result: FlushResult) -> CountersignError? {
        // Apart from quarantine, only the last outcome counts: records of a failed batch may have been sent again.
        if result.ending == .drained, result.batches.last.map({ $0.outcome == .delivered }) ?? true,
            !result.batches.contains(where: { $0.outcome == .quarantined })
        {
            return nil
        }
        let detail = "\(result.queued) records wait"
        if result.ending == .closed { return CountersignError(.closed, "the client is closed") }
        if result.ending == .otherProcessIsSending { return CountersignError(.syncInProgress, detail) }
        guard let last = result.batches.last else {
            return CountersignError(result.ending == .parked ? .notAuthorized : .response, detail)
        }
        let isNetwork = [
            HTTPTransportError.Code.cannotConnect, .connectionLost, .timedOut, .tls, .notPermitted, .other,
        ].contains { $0.rawValue == last.code }
        if isNetwork { return CountersignError(.networkConnection, "\(last.code); \(detail)") }
        if last.code.hasPrefix("http_3") { return CountersignError(.redirect, "\(last.code); \(detail)") }
        return CountersignError(
            last.outcome == .tokenProblem ? .notAuthorized : .response, "\(last.code); \(detail)")
    }

    // MARK: Quarantine

    /// Returns the records in quarantine, oldest first.
    ///
    /// - Returns: The records in quarantine.
    /// - Throws: `CountersignError` with `storageFailed` when the store cannot be read now.
    public func quarantinedRecords() async throws(CountersignError) -> [QuarantinedEvent] {
        try await pipeline.quarantined()
    }

    /// Moves all records of the quarantine back into the queue, such as after a server was repaired.
    ///
    /// - Returns: The number of records.
    /// - Throws: `CountersignError` with `storageFailed` when the store cannot be written now.
    @discardableResult
    public func requeueQuarantinedRecords() async throws(CountersignError) -> Int {
        try await pipeline.requeueQuarantined()
    }

    /// Deletes all records of the quarantine permanently.
    ///
    /// - Returns: The number of records.
    /// - Throws: `CountersignError` with `storageFailed` when the store cannot be written now.
    @discardableResult
    public func deleteQuarantinedRecords() async throws(CountersignError) -> Int {
        try await pipeline.deleteQuarantined()
    }

    /// Returns the state of the queue and of sending.
    ///
    /// - Returns: The present state.
    public func snapshot() async -> CountersignSnapshot { await pipeline.snapshot() }
}
