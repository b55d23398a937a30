import Testing

@testable import CountersignCLI

@Suite(.timeLimit(.minutes(5)))
struct ReplayTests {
    private let folder = TemporaryFolder()

    @Test(arguments: [
        ("<gpx><trk><trkpt lat=\"1\" lon=\"2\"/></trk></gpx>", "GPX track f"),
        ("\u{FEFF}\n <gpx><trk><trkpt lat=\"1\" lon=\"2\"/></trk></gpx>", "GPX track f"),
        ("a - - [17/May/2015:10:05:03 +0000] \"-\" 200 1 \"-\" \"-\"", "access log f"),
    ])
    func theFormatIsDetectedFromTheFirstCharacter(text: String, source: String) throws {
        // The second text has no `<?xml`, because XML forbids blanks before its declaration.
        #expect(try Replay.read(path: folder.write(text, to: "f")).source == source)
    }

    @Test(arguments: [
        ("", "empty holds no line of a combined access log"),
        ("id,name\n1,a\n", "empty holds no line of a combined access log; line 1: the identity is missing"),
        ("<gpx/>", "empty holds no track point"),
        ("<html>", "empty holds no track point; line 1: the XML is broken here; the rest is not read"),
    ])
    func aFileWithoutEventsNamesTheExpectedFormat(text: String, reason: String) throws {
        let path = try folder.write(text, to: "empty")
        let error = #expect(throws: CommandError.self) { try Replay.read(path: path) }
        #expect(error?.code == .failed)
        #expect(error?.reason == reason)
        #expect(error?.hint != nil)
    }

    @Test func aPipeIsReadAsAFile() throws {
        let pipe = try FilledPipe("<gpx><trk><trkpt lat=\"1\" lon=\"2\"/></trk></gpx>")
        #expect(try Replay.read(path: pipe.path).events.count == 1)
    }

    @Test func aMissingFileIsNotFound() {
        let error = #expect(throws: CommandError.self) { try Replay.read(path: "/no/such/file") }
        #expect(error?.code == .notFound)
    }
}
