internal import CountersignCore
internal import CountersignLocations
internal import Foundation

extension Replay {
    /// Converts each track point of a GPX file to an event. Each track is a user.
    static func gpx(_ data: Data, named name: String) -> Replay {
        let document = GPXReader.read(data)
        let stem = String(name.split(separator: ".").first ?? "track")
        let events = document.points.map { point in
            var properties: JSONObject = [
                "lat": .number(point.latitude), "lon": .number(point.longitude),
            ]
            if let elevation = point.elevation { properties["elevation_m"] = .number(elevation) }
            if let time = point.milliseconds {
                properties["time"] = .string(RFC3339.text(milliseconds: time))
            }
            return ReplayEvent(
                userID: "\(stem)-\(point.track)", name: "Location Updated", properties: properties)
        }
        return Replay(
            source: "GPX track \(name)", events: events,
            problems: document.problems.map { Problem(line: $0.line, reason: $0.reason) },
            lines: document.points.map(\.line), isCutShort: document.isCutShort)
    }
}
