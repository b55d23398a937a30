internal import Countersign
internal import CountersignCore
internal import Foundation

#if canImport(FoundationXML)
    internal import FoundationXML
#endif

extension Replay {
    /// Each track point of a GPX file an event; each track is one user.
    static func gpx(_ data: Data, named name: String) -> Replay {
        let document = GPXReader.read(data)
        let stem = String(name.split(separator: ".").first ?? "track")
        let events = document.points.map { point in
            var properties: [String: JSONValue] = [
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
            lines: TrackPointLines.read(data, of: document))
    }
}

/// Finds the line of each track point of a GPX file: the reader tells those of its problems only.
private final class TrackPointLines: NSObject, XMLParserDelegate {
    private var open: Int?
    private var lines: [Int] = []

    /// - Parameters:
    ///   - data: The file.
    ///   - document: What the reader made of it.
    /// - Returns: The line of each of its points.
    static func read(_ data: Data, of document: GPXReader.Document) -> [Int] {
        let found = TrackPointLines()
        let parser = XMLParser(data: data)
        parser.shouldProcessNamespaces = true
        parser.delegate = found
        _ = parser.parse()
        // The last problem may be the file's end, which is no point.
        let refused = document.problems.prefix(max(0, found.lines.count - document.points.count)).map(\.line)
        var left = Dictionary(refused.map { ($0, 1) }, uniquingKeysWith: +)
        return found.lines.filter { line in
            guard let count = left[line], count > 0 else { return true }
            left[line] = count - 1
            return false
        }
    }

    func parser(
        _ parser: XMLParser, didStartElement elementName: String, namespaceURI: String?,
        qualifiedName qName: String?, attributes attributeDict: [String: String]
    ) {
        if elementName == "trkpt" { open = parser.lineNumber }
    }

    func parser(
        _ parser: XMLParser, didEndElement elementName: String, namespaceURI: String?,
        qualifiedName qName: String?
    ) {
        guard elementName == "trkpt", let line = open else { return }
        lines.append(line)
        open = nil
    }
}
