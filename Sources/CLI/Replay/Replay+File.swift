internal import Foundation

extension Replay {
    /// Reads an access log in the combined format or a GPX file, distinguished by the first byte after white space
    /// and a byte order mark. Events are in the order of the file. Throws `notFound` if the file cannot be read, and
    /// `failed` without events.
    static func read(path: String) throws(CommandError) -> Replay {
        let data = Data(try InputFile(path: path).bytes())
        let name = URL(fileURLWithPath: path).lastPathComponent
        let isXML = data.drop { $0 <= 0x20 || [0xEF, 0xBB, 0xBF].contains($0) }.first == UInt8(ascii: "<")
        let replay =
            isXML
            ? Replay.gpx(data, named: name)
            : AccessLog.read(data, named: name)
        guard !replay.events.isEmpty else {
            let detail = replay.problems.first.map { "; line \($0.line): \($0.reason)" } ?? ""
            throw CommandError(
                .failed,
                "\(name) holds no \(isXML ? "track point" : "line of a combined access log")\(detail)",
                hint: "the demo replays an Apache or nginx access log in the combined format, or a GPX track")
        }
        return replay
    }
}
