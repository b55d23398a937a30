internal import CountersignCore
internal import Foundation

#if canImport(FoundationXML)
    internal import FoundationXML
#endif

/// Reads the track points of a GPX file, version 1.0 or 1.1. Waypoints and routes are no track and are passed over.
final class GPXReader: NSObject, XMLParserDelegate {
    private struct Point {
        let line: Int
        let latitude: Double?
        let longitude: Double?
        var elevation: String?
        var time: String?
    }

    private let stem: String
    private var replay: Replay
    private var track = 0
    private var point: Point?
    private var text = ""
    private var openElements = 0

    private init(name: String) {
        stem = String(name.split(separator: ".").first ?? "track")
        replay = Replay(source: "GPX track \(name)", events: [])
    }

    /// Each track point an event; each track is one user. Of a file that is cut short, the points before the cut.
    static func read(_ data: Data, named name: String) -> Replay {
        let reader = GPXReader(name: name)
        let parser = XMLParser(data: data)
        parser.shouldProcessNamespaces = true
        parser.delegate = reader
        // On Linux `parse` is content with a document that just ends.
        if !parser.parse() || reader.openElements > 0 {
            reader.replay.problems.append(
                Replay.Problem(
                    line: parser.lineNumber, reason: "the XML is broken here; what follows is not read"))
        }
        return reader.replay
    }

    func parser(
        _ parser: XMLParser, didStartElement elementName: String, namespaceURI: String?,
        qualifiedName qName: String?, attributes attributeDict: [String: String]
    ) {
        text = ""
        openElements += 1
        switch elementName {
        case "trk": track += 1
        case "trkpt":
            point = Point(
                line: parser.lineNumber, latitude: attributeDict["lat"].flatMap(Double.init),
                longitude: attributeDict["lon"].flatMap(Double.init))
        default: break
        }
    }

    func parser(_ parser: XMLParser, foundCharacters string: String) {
        text += string
    }

    func parser(
        _ parser: XMLParser, didEndElement elementName: String, namespaceURI: String?,
        qualifiedName qName: String?
    ) {
        openElements -= 1
        let content = text.trimmingCharacters(in: .whitespacesAndNewlines)
        switch elementName {
        case "ele": point?.elevation = content
        case "time": point?.time = content
        case "trkpt":
            if let point { finish(point) }
            point = nil
        default: break
        }
    }

    private func finish(_ point: Point) {
        guard let latitude = point.latitude, let longitude = point.longitude, (-90...90).contains(latitude),
            (-180...180).contains(longitude)
        else { return refuse(point, "the point has no latitude and longitude within their limits") }
        var properties: [String: JSONValue] = ["lat": .number(latitude), "lon": .number(longitude)]
        if let text = point.elevation {
            guard let elevation = Double(text), elevation.isFinite else {
                return refuse(point, "the elevation is not a number")
            }
            properties["elevation_m"] = .number(elevation)
        }
        if let text = point.time {
            guard let milliseconds = RFC3339.milliseconds(text.utf8) else {
                return refuse(point, "the time is not like 2010-10-03T13:15:19Z")
            }
            properties["time"] = .string(RFC3339.text(milliseconds: milliseconds))
        }
        replay.events.append(
            ReplayEvent(userID: "\(stem)-\(track)", name: "Location Updated", properties: properties))
    }

    private func refuse(_ point: Point, _ reason: String) {
        replay.problems.append(Replay.Problem(line: point.line, reason: reason))
    }
}
