public import CountersignCore
internal import CountersignTransport
public import Foundation

// Recording locations.
extension LocationClient {
    /// Stores a location; when it returns, the record is on disk.
    ///
    /// - Parameter location: Where and when.
    /// - Returns: The record's id.
    /// - Throws: `CountersignError`: `invalidLocation` for what cannot be a location, others if it is not
    ///   stored.
    @discardableResult
    public func record(_ location: Location) async throws(CountersignError) -> String {
        try await insert(location.record)
    }

    /// Stores a record in the default shape; when it returns, the record is on disk.
    ///
    /// - Parameter record: At least `coords` with `latitude` and `longitude`. A `timestamp` is text (RFC
    ///   3339; forms of ISO
    ///     8601 with an offset such as `+0100` are converted) or milliseconds since 1970. One that cannot be
    ///     read is sent as it is, with a warning in the log. A missing `timestamp` is the present, a
    ///   missing `uuid` is made. Servers drop a second record with the same `uuid`.
    /// - Returns: The record's `uuid`.
    /// - Throws: `CountersignError`: `invalidLocation` for what cannot be a location, others if it is not
    ///   stored.
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

    /// As `insert`, in the order of the calls. `stored` is called once, on any thread, unless this throws.
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
        var body = JSONValue.object(made.object)
        let template = configuration.persistence.locationTemplate
        if !template.isEmpty {
            if let rendered = LocationTemplate(text: template).render(made.object) {
                body = rendered.limited()
            } else {
                configuration.log?(
                    .warning, "locationTemplate error: not a JSON object or array, the default is used", [:])
            }
        }
        pipeline.store(LocationContent(value: body), messageID: made.uuid) { [weak self] result in
            if let self, case .success = result { took(made.object, configuration) }
            stored(result.map { _ in made.uuid })
        }
    }

    /// What follows when a record is on disk.
    private func took(_ record: JSONObject, _ configuration: LocationConfiguration) {
        if configuration.http.autoSync, record["event"] == "motionchange" {
            pipeline.sendSoon()
        }
        if let handler = configuration.onLocation {
            callbacks.async { handler(record) }
        }
    }

    /// Records each location of a sequence until it ends, the task is cancelled, or `stop()` is called.
    ///
    /// - Parameter locations: Such as those of a receiver, or of `locations(inGPX:)`.
    /// - Returns: How many were recorded. One that cannot be stored is passed over and logged.
    /// - Throws: What the sequence throws.
    @discardableResult
    public func record<Locations: AsyncSequence & Sendable>(contentsOf locations: Locations) async throws
        -> Int
    where Locations.Element == Location {
        let (epoch, log) = state.withLock { ($0.epoch, $0.configuration.log) }
        var count = 0
        for try await location in locations {
            guard !Task.isCancelled, state.withLock({ $0.epoch }) == epoch else { break }
            do {
                try await record(location)
                count += 1
            } catch {
                log?(.warning, "location was not recorded", ["error": "\(error)"])
            }
        }
        return count
    }

    /// The track points of a GPX file, version 1.0 or 1.1.
    ///
    /// - Parameter data: The file. Of one that is cut short, the points before the cut.
    /// - Returns: The points in order. One without a time has the present one.
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

    /// Begins to record: on Apple platforms what Core Location says, if the person allows it. It ends with
    /// `stop()`, or when nobody has the client any longer.
    public func start() {
        #if canImport(CoreLocation)
            listen { CoreLocationSource.signals($0) }
        #endif
    }

    /// Listens to a source, unless there is one. Between two signals nobody keeps the client.
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
        case .location(let location):
            do {
                try await record(location)
            } catch {
                configuration.log?(.warning, "location was not recorded", ["error": "\(error)"])
            }
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

    /// Ends all recording that is under way. What was recorded is sent.
    public func stop() {
        state.withLock { state in
            state.epoch += 1
            state.source?.cancel()
            state.source = nil
        }
    }
}
