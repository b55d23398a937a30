internal import CountersignCore
internal import CountersignTransport
internal import Foundation

/// Stores `http` except `gzip`, `authorization` except tokens, and `persistence` between two runs.
struct SettingsFile: Sendable {
    let path: String
    let log: CountersignLog?

    init(directory: URL, log: CountersignLog?) {
        path = directory.appendingPathComponent("settings.json").path
        self.log = log
    }

    /// Call it on the storage thread.
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

    /// Replaces the settings in `configuration` by the stored settings. Does nothing if the file is missing or damaged.
    func restore(_ configuration: inout LocationConfiguration) {
        guard let data = FileManager.default.contents(atPath: path),
            let stored = JSONDocument.object(Array(data))
        else { return }
        configuration.http.take(stored["http"]?.object ?? [:])
        configuration.authorization.take(stored["authorization"]?.object ?? [:])
        configuration.persistence.take(stored["persistence"]?.object ?? [:])
    }
}

private func json(_ texts: [String: String]) -> JSONValue {
    .object(JSONObject(texts.mapValues { .string($0) }))
}

extension LocationConfiguration.HTTP {
    fileprivate var members: JSONObject {
        [
            "url": .string(url), "method": .string(method), "headers": json(headers),
            "params": .object(params),
            "rootProperty": .string(rootProperty), "timeout": .number(timeout), "autoSync": .bool(autoSync),
            "autoSyncThreshold": .integer(Int64(autoSyncThreshold)), "batchSync": .bool(batchSync),
            "maxBatchSize": .integer(Int64(maxBatchSize)), "acceptsPages": .bool(acceptsPages),
        ]
    }

    fileprivate mutating func take(_ stored: JSONObject) {
        url = stored["url"]?.string ?? url
        method = stored["method"]?.string ?? method
        headers = stored["headers"]?.texts ?? headers
        params = stored["params"]?.object ?? params
        rootProperty = stored["rootProperty"]?.string ?? rootProperty
        timeout = stored["timeout"]?.double ?? timeout
        autoSync = stored["autoSync"]?.bool ?? autoSync
        autoSyncThreshold = stored["autoSyncThreshold"]?.int ?? autoSyncThreshold
        batchSync = stored["batchSync"]?.bool ?? batchSync
        maxBatchSize = stored["maxBatchSize"]?.int ?? maxBatchSize
        acceptsPages = stored["acceptsPages"]?.bool ?? acceptsPages
    }
}

extension AuthorizationConfiguration {
    /// Without the tokens and their expiry.
    fileprivate var members: JSONObject {
        var members: JSONObject = [
            "strategy": .string(strategy.rawValue), "expiresUnit": .string(expiresUnit.rawValue),
            "refreshStatuses": .array(refreshStatuses.sorted().map { .integer(Int64($0)) }),
            "responseMapping": json(responseMapping),
        ]
        members["refreshUrl"] = refreshUrl.map { .string($0) }
        members["refreshPayload"] = refreshPayload.map { .object($0) }
        members["refreshHeaders"] = refreshHeaders.map { json($0) }
        return members
    }

    fileprivate mutating func take(_ stored: JSONObject) {
        guard !stored.isEmpty else { return }
        strategy = stored["strategy"]?.string.map { .init(rawValue: $0) } ?? strategy
        expiresUnit = stored["expiresUnit"]?.string.map { .init(rawValue: $0) } ?? expiresUnit
        refreshUrl = stored["refreshUrl"]?.string
        refreshPayload = stored["refreshPayload"]?.object
        refreshHeaders = stored["refreshHeaders"]?.texts
        responseMapping = stored["responseMapping"]?.texts ?? responseMapping
        if let statuses = stored["refreshStatuses"]?.array {
            refreshStatuses = Set(statuses.compactMap(\.int))
        }
    }
}

extension LocationConfiguration.Persistence {
    fileprivate var members: JSONObject {
        [
            "locationsOrderDirection": .string(locationsOrderDirection.rawValue),
            "maxDaysToPersist": .integer(Int64(maxDaysToPersist)),
            "maxRecordsToPersist": .integer(Int64(maxRecordsToPersist)), "extras": .object(extras),
            "locationTemplate": .string(locationTemplate),
            "timestampFormat": .string(timestampFormat.rawValue),
        ]
    }

    fileprivate mutating func take(_ stored: JSONObject) {
        locationsOrderDirection =
            stored["locationsOrderDirection"]?.string.map { .init(rawValue: $0) } ?? locationsOrderDirection
        maxDaysToPersist = stored["maxDaysToPersist"]?.int ?? maxDaysToPersist
        maxRecordsToPersist = stored["maxRecordsToPersist"]?.int ?? maxRecordsToPersist
        extras = stored["extras"]?.object ?? extras
        locationTemplate = stored["locationTemplate"]?.string ?? locationTemplate
        timestampFormat = stored["timestampFormat"]?.string.map { .init(rawValue: $0) } ?? timestampFormat
    }
}
