internal import CountersignCore
package import Foundation

#if canImport(FoundationXML)
    package import FoundationXML
#endif

/// Reads the track points of a GPX file, version 1.0 or 1.1, but no waypoints and routes.
package final class GPXReader: NSObject, XMLParserDelegate {
    package struct Point: Sendable {
        /// The line of the point in the file, from 1.
        package let line: Int
        /// The number of the point's track in the file, from 1.
        package let track: Int
        package let latitude: Double
        package let longitude: Double
        /// Metres above the sea.
        package let elevation: Double?
        /// The time of the point, since 1970.
        package let milliseconds: Int64?
    }

    package struct Problem: Sendable {
        /// The line of the problem in the file, from 1.
        package let line: Int
        package let reason: String
    }

    package struct Document: Sendable {
        package var points: [Point] = []
        package var problems: [Problem] = []
        /// True if the XML is broken or truncated. The last of `problems` then has the line.
        package var isCutShort = false
    }

    private struct Draft {
        let line: Int
        let latitude: Double?
        let longitude: Double?
        var elevation: String?
        var time: String?
    }

    private var document = Document()
    private var track = 0
    private var draft: Draft?
    private var text = ""
    private var openElements = 0

    /// For a truncated file, returns the points before the truncation.
    package static func read(_ data: Data) -> Document {
        let reader = GPXReader()
        let parser = XMLParser(data: data)
        parser.shouldProcessNamespaces = true
        parser.delegate = reader
        // On Linux `parse` accepts a truncated document.
        if !parser.parse() || reader.openElements > 0 {
            reader.document.isCutShort = true
            reader.document.problems.append(
                Problem(line: parser.lineNumber, reason: "the XML is broken here; the rest is not read"))
        }
        return reader.document
    }

    package func parser(
        _ parser: XMLParser, didStartElement elementName: String, namespaceURI: String?,
        qualifiedName qName: String?, attributes attributeDict: [String: String]
    ) {
        text = ""
        openElements += 1
        switch elementName {
        case "trk": track += 1
        case "trkpt":
            draft = Draft(
                line: parser.lineNumber, latitude: attributeDict["lat"].flatMap(Double.init),
                longitude: attributeDict["lon"].flatMap(Double.init))
        default: break
        }
    }

    package func parser(_ parser: XMLParser, foundCharacters string: String) {
        text += string
    }

    package func parser(
        _ parser: XMLParser, didEndElement elementName: String, namespaceURI: String?,
        qualifiedName qName: String?
    ) {
        openElements -= 1
        let content = text.trimmingCharacters(in: .whitespacesAndNewlines)
        switch elementName {
        case "ele": draft?.elevation = content
        case "time": draft?.time = content
        case "trkpt":
            if let draft { finish(draft) }
            draft = nil
        default: break
        }
    }

    private func finish(_ draft: Draft) {
        guard let latitude = draft.latitude, let longitude = draft.longitude, (-90...90).contains(latitude),
            (-180...180).contains(longitude)
        else { return reject(draft, "the point has no latitude and longitude within their limits") }
        var elevation: Double?
        if let text = draft.elevation {
            guard let number = Double(text), number.isFinite else {
                return reject(draft, "the elevation is not a number")
            }
            elevation = number
        }
        var milliseconds: Int64?
        if let text = draft.time {
            guard let time = RFC3339.milliseconds(text, isLenient: true) else {
                return reject(draft, "the time is not like 2010-10-03T13:15:19Z")
            }
            milliseconds = time
        }
        document.points.append(
            Point(
                line: draft.line, track: track, latitude: latitude, longitude: longitude,
                elevation: elevation, milliseconds: milliseconds))
    }

    private func reject(_ draft: Draft, _ reason: String) {
        document.problems.append(Problem(line: draft.line, reason: reason))
    }
}
