public import CountersignCore
internal import CountersignTransport
public import Foundation

extension LocationClient {
    /// Stores a location; when it returns, the record is on disk.
    ///
    /// - Parameter location: The location.
    /// - Returns: The record's id.
    /// - Throws: `CountersignError`: `invalidLocation` for an invalid location, other codes if it is not stored.
    @discardableResult
    public func record(_ location: Location) async throws(CountersignError) -> String {
        try await insert(location.record)
    }

    /// Stores a record in the default shape; when it returns, the record is on disk.
    ///
    /// - Parameter record: At least `coords` with `latitude` and `longitude`. A `timestamp` is text (RFC 3339, or ISO
    ///   8601 with an offset such as `+0100`) or milliseconds since 1970; default: now. An unreadable timestamp is
    ///   sent unchanged and logged. A missing `uuid` is created. A gateway drops a second record with the same `uuid`.
    /// - Returns: The record's `uuid`.
    /// - Throws: `CountersignError`: `invalidLocation` for an invalid location, other codes if it is not stored.
    @discardableResult
    public func insert(_ record: JSONObject) async throws(CountersignError) -> String {
        let result: Result<String, CountersignError> = await withCheckedContinuation { continuation in
            do throws(CountersignError) {
                try insert(record) { continuation.resume(returning: $0) }
            } catch {
                continuation.resume(returning: .failure(error))
            }
        }
        return try result.get()
    }

    /// Stores records in the order of the calls. `stored` is called once, on any thread, unless this method throws.
    package func insert(
        _ record: JSONObject,
        stored: @escaping @Sendable (Result<String, CountersignError>) -> Void
    ) throws(CountersignError) {
        let configuration = configuration
        let made = try LocationRecord(record, settings: configuration.persistence, now: pipeline.clock.now)
        guard configuration.persistence.maxRecordsToPersist != 0 else {
            throw CountersignError(.notPersisted, "maxRecordsToPersist is 0")
        }
        if made.hasUnreadableTimestamp {
            configuration.log?(
                .warning,
                "timestamp is not a date and time with an offset, nor milliseconds since 1970; it is sent as it is",
                ["uuid": made.uuid])
        }
        var body = JSONValue.object(made.carrying(facts))
        let template = configuration.persistence.locationTemplate
        if !template.isEmpty {
            if let rendered = LocationTemplate(text: template).render(made.object) {
                body = rendered.limited()
            } else {
                configuration.log?(
                    .warning, "locationTemplate error: not a JSON object or array, the default is used", [:])
            }
        }
        pipeline.recorder.record(LocationContent(value: body), messageID: made.uuid) { [weak self] result in
            if let self, case .success = result { notify(made.object, configuration) }
            stored(result.map { _ in made.uuid })
        }
    }

    private func notify(_ record: JSONObject, _ configuration: LocationConfiguration) {
        if configuration.http.autoSync, record["event"] == "motionchange" {
            pipeline.sendSoon()
        }
        if let handler = configuration.onLocation {
            callbacks.async { handler(record) }
        }
    }

    /// Records each location of a sequence until it ends, the task is cancelled, or `stop()` is called.
    ///
    /// - Parameter locations: The locations, such as the result of `locations(inGPX:)`.
    /// - Returns: The number of recorded locations. A location that cannot be stored is skipped and logged.
    /// - Throws: Errors of the sequence.
    @discardableResult
    public func record<Locations: AsyncSequence & Sendable>(contentsOf locations: Locations) async throws
        -> Int
    where Locations.Element == Location {
        let epoch = state.withLock { $0.epoch }
        var count = 0
        for try await location in locations {
            guard !Task.isCancelled, state.withLock({ $0.epoch }) == epoch else { break }
            if await recordOrLog(location) { count += 1 }
        }
        return count
    }

    /// Returns false for a location that cannot be stored.
    @discardableResult
    private func recordOrLog(_ location: Location) async -> Bool {
        do {
            try await record(location)
            return true
        } catch {
            configuration.log?(.warning, "location was not recorded", ["error": "\(error)"])
            return false
        }
    }

    /// The track points of a GPX file, version 1.0 or 1.1.
    ///
    /// - Parameter data: The file. A truncated file yields the points before the truncation.
    /// - Returns: The points in order. A point without a time gets the current time.
    public static func locations(inGPX data: Data) -> AsyncStream<Location> {
        let now = Date()
        let locations = GPXReader.read(data).points.map { point in
            var location = Location(
                latitude: point.latitude, longitude: point.longitude,
                timestamp: point.milliseconds.map {
                    Milliseconds($0).date
                } ?? now)
            location.altitude = point.elevation
            return location
        }
        return AsyncStream { continuation in
            for location in locations { continuation.yield(location) }
            continuation.finish()
        }
    }

    /// Starts recording from Core Location on Apple platforms, if the user allows it. Ends with `stop()`, `close()` or
    /// when the client is deallocated.
    public func start() {
        #if canImport(CoreLocation)
            listen { CoreLocationSource.signals($0) }
        #endif
    }

    /// Records the locations in `signals`. Does nothing if already listening. Retains the client only during a signal.
    func listen(
        to signals: @escaping @Sendable (LocationConfiguration.Positioning) -> AsyncStream<PositioningSignal>
    ) {
        state.withLock { state in
            guard state.source == nil else { return }
            state.source = Task { [weak self, settings = state.configuration.positioning] in
                for await signal in signals(settings) {
                    guard !Task.isCancelled, let self else { return }
                    await take(signal)
                }
            }
        }
    }

    private func take(_ signal: PositioningSignal) async {
        let configuration = configuration
        switch signal {
        case .location(let location): await recordOrLog(location)
        case .status(let status):
            let isGood = status.errorCode == nil && [.always, .whenInUse].contains(status.authorization)
            configuration.log?(
                isGood ? .info : .warning, "positioning",
                [
                    "authorization": status.authorization.rawValue,
                    "error": status.errorCode.map(String.init) ?? "none",
                ])
            if let handler = configuration.onPositioning { callbacks.async { handler(status) } }
        }
    }

    /// Ends `start()` and calls of `record(contentsOf:)`. Locations recorded before are still sent.
    public func stop() {
        state.withLock { state in
            state.epoch += 1
            state.source?.cancel()
            state.source = nil
        }
    }
}
