internal import Countersign
internal import CountersignCore
internal import Foundation

/// The settings of a `LocationClient` between two runs, without tokens: those have a safer place.
struct SettingsFile: Sendable {
    let path: String
    let log: CountersignLog?

    init(directory: URL, log: CountersignLog?) {
        path = directory.appendingPathComponent("settings.json").path
        self.log = log
    }

    /// To be called on the storage thread.
    func save(_ configuration: LocationConfiguration) {
        let bytes = JSONValue.object([
            "http": .object(configuration.http.members),
            "authorization": .object(configuration.authorization.members),
            "persistence": .object(configuration.persistence.members),
        ]).bytes
        do {
            if FileManager.default.contents(atPath: path) != Data(bytes) {
                try DurableFile.write(Data(bytes), to: path)
            }
        } catch {
            log?(.warning, "settings could not be stored", ["error": "\(error)"])
        }
    }

    /// Puts the stored settings in place of the given ones; without any, or with damaged ones, those stay.
    func restore(_ configuration: inout LocationConfiguration) {
        guard let data = FileManager.default.contents(atPath: path),
            let stored = JSONDocument.object(Array(data))
        else { return }
        func members(_ name: String) -> [String: JSONValue] {
            if case .object(let members) = stored[name] { members } else { [:] }
        }
        configuration.http.take(members("http"))
        configuration.authorization.take(members("authorization"))
        configuration.persistence.take(members("persistence"))
    }
}

extension [String: JSONValue] {
    fileprivate func text(_ name: String) -> String? {
        if case .string(let text) = self[name] { text } else { nil }
    }

    fileprivate func bool(_ name: String) -> Bool? {
        if case .bool(let value) = self[name] { value } else { nil }
    }

    fileprivate func number(_ name: String) -> Double? {
        switch self[name] {
        case .integer(let value): Double(value)
        case .number(let value): value
        default: nil
        }
    }

    fileprivate func integer(_ name: String) -> Int? { number(name).flatMap { Int(exactly: $0) } }

    fileprivate func object(_ name: String) -> [String: JSONValue]? {
        if case .object(let members) = self[name] { members } else { nil }
    }

    fileprivate func texts(_ name: String) -> [String: String]? {
        object(name)?.compactMapValues { if case .string(let text) = $0 { text } else { nil } }
    }
}

private func json(_ texts: [String: String]) -> JSONValue { .object(texts.mapValues { .string($0) }) }

extension LocationConfiguration.HTTP {
    fileprivate var members: [String: JSONValue] {
        [
            "url": .string(url), "method": .string(method), "headers": json(headers),
            "params": .object(params),
            "rootProperty": .string(rootProperty), "timeout": .number(timeout), "autoSync": .bool(autoSync),
            "autoSyncThreshold": .integer(Int64(autoSyncThreshold)), "batchSync": .bool(batchSync),
            "maxBatchSize": .integer(Int64(maxBatchSize)), "acceptsPages": .bool(acceptsPages),
        ]
    }

    fileprivate mutating func take(_ stored: [String: JSONValue]) {
        url = stored.text("url") ?? url
        method = stored.text("method") ?? method
        headers = stored.texts("headers") ?? headers
        params = stored.object("params") ?? params
        rootProperty = stored.text("rootProperty") ?? rootProperty
        timeout = stored.number("timeout") ?? timeout
        autoSync = stored.bool("autoSync") ?? autoSync
        autoSyncThreshold = stored.integer("autoSyncThreshold") ?? autoSyncThreshold
        batchSync = stored.bool("batchSync") ?? batchSync
        maxBatchSize = stored.integer("maxBatchSize") ?? maxBatchSize
        acceptsPages = stored.bool("acceptsPages") ?? acceptsPages
    }
}

extension AuthorizationConfiguration {
    /// All but the tokens and when they expire.
    fileprivate var members: [String: JSONValue] {
        var members: [String: JSONValue] = [
            "strategy": .string(strategy.rawValue), "expiresUnit": .string(expiresUnit.rawValue),
            "refreshStatuses": .array(refreshStatuses.sorted().map { .integer(Int64($0)) }),
            "responseMapping": json(responseMapping),
        ]
        members["refreshUrl"] = refreshUrl.map { .string($0) }
        members["refreshPayload"] = refreshPayload.map { .object($0) }
        members["refreshHeaders"] = refreshHeaders.map { json($0) }
        return members
    }

    fileprivate mutating func take(_ stored: [String: JSONValue]) {
        guard !stored.isEmpty else { return }
        strategy = stored.text("strategy").map { .init(rawValue: $0) } ?? strategy
        expiresUnit = stored.text("expiresUnit").map { .init(rawValue: $0) } ?? expiresUnit
        refreshUrl = stored.text("refreshUrl")
        refreshPayload = stored.object("refreshPayload")
        refreshHeaders = stored.texts("refreshHeaders")
        responseMapping = stored.texts("responseMapping") ?? responseMapping
        if case .array(let statuses) = stored["refreshStatuses"] {
            refreshStatuses = Set(
                statuses.compactMap { if case .integer(let status) = $0 { Int(status) } else { nil } })
        }
    }
}

extension LocationConfiguration.Persistence {
    fileprivate var members: [String: JSONValue] {
        [
            "locationsOrderDirection": .string(locationsOrderDirection.rawValue),
            "maxDaysToPersist": .integer(Int64(maxDaysToPersist)),
            "maxRecordsToPersist": .integer(Int64(maxRecordsToPersist)), "extras": .object(extras),
            "locationTemplate": .string(locationTemplate),
            "timestampFormat": .string(timestampFormat.rawValue),
        ]
    }

    fileprivate mutating func take(_ stored: [String: JSONValue]) {
        locationsOrderDirection =
            stored.text("locationsOrderDirection").map { .init(rawValue: $0) } ?? locationsOrderDirection
        maxDaysToPersist = stored.integer("maxDaysToPersist") ?? maxDaysToPersist
        maxRecordsToPersist = stored.integer("maxRecordsToPersist") ?? maxRecordsToPersist
        extras = stored.object("extras") ?? extras
        locationTemplate = stored.text("locationTemplate") ?? locationTemplate
        timestampFormat = stored.text("timestampFormat").map { .init(rawValue: $0) } ?? timestampFormat
    }
}
