import CountersignCore
import Foundation
import Testing

@testable import CountersignCLI

struct GPXReaderTests {
    private func read(_ body: String, version: String = "1/1") -> Replay {
        let text =
            "<?xml version=\"1.0\"?><gpx xmlns=\"http://www.topografix.com/GPX/\(version)\">\(body)</gpx>"
        return Replay.gpx(Data(text.utf8), named: "walk.gpx")
    }

    @Test(arguments: ["1/0", "1/1"])
    func readsPointsOfEachTrack(version: String) {
        let replay = read(
            """
            <wpt lat="1" lon="1"><ele>1</ele></wpt>
            <trk><name>empty</name><trkseg></trkseg></trk>
            <trk><time>nonsense</time><trkseg>
              <trkpt lat="45.5" lon="-14"><ele> 733.6 </ele><time>2010-10-03T13:15:19Z</time></trkpt>
            </trkseg><trkseg><trkpt lat="1" lon="2"/></trkseg></trk>
            <rte><rtept lat="3" lon="3"/></rte>
            """, version: version)
        #expect(
            replay.events == [
                ReplayEvent(
                    userID: "walk-2", name: "Location Updated",
                    properties: [
                        "lat": 45.5, "lon": .number(-14), "elevation_m": 733.6,
                        "time": "2010-10-03T13:15:19.000Z",
                    ]),
                ReplayEvent(
                    userID: "walk-2", name: "Location Updated",
                    properties: ["lat": .number(1), "lon": .number(2)]),
            ])
        #expect(replay.problems.isEmpty)
    }

    @Test func readsAFileWithANamespacePrefix() {
        let text = "<g:gpx xmlns:g=\"u\"><g:trk><g:trkpt lat=\"1\" lon=\"2\"/></g:trk></g:gpx>"
        #expect(Replay.gpx(Data(text.utf8), named: "a").events.count == 1)
    }

    @Test(arguments: [
        ("<trkpt lat=\"91\" lon=\"0\"/>", "the point has no latitude and longitude within their limits"),
        ("<trkpt lat=\"0\" lon=\"-180.1\"/>", "the point has no latitude and longitude within their limits"),
        ("<trkpt lat=\"nan\" lon=\"0\"/>", "the point has no latitude and longitude within their limits"),
        ("<trkpt lon=\"0\"/>", "the point has no latitude and longitude within their limits"),
        ("<trkpt lat=\"0\" lon=\"0\"><ele>high</ele></trkpt>", "the elevation is not a number"),
        ("<trkpt lat=\"0\" lon=\"0\"><ele>nan</ele></trkpt>", "the elevation is not a number"),
        ("<trkpt lat=\"0\" lon=\"0\"><ele>1e999</ele></trkpt>", "the elevation is not a number"),
        ("<trkpt lat=\"0\" lon=\"0\"><time>noon</time></trkpt>", "the time is not like 2010-10-03T13:15:19Z"),
    ])
    func aBadPointIsReportedAndItsNeighboursAreKept(point: String, reason: String) {
        let replay = read("<trk><trkpt lat=\"1\" lon=\"1\"/>\n\(point)\n<trkpt lat=\"2\" lon=\"2\"/></trk>")
        #expect(replay.events.count == 2)
        #expect(replay.problems.map(\.reason) == [reason])
        #expect(replay.problems.first?.line == 2)
    }

    @Test func aFileThatIsCutShortGivesThePointsBeforeTheCut() {
        let text = "<gpx><trk>\n<trkpt lat=\"1\" lon=\"2\"/>\n<trkpt lat=\"1\" "
        let replay = Replay.gpx(Data(text.utf8), named: "cut.gpx")
        #expect(replay.events.count == 1)
        #expect(replay.problems.map(\.line) == [3])
    }

    @Test func eachPointOfTheExampleIsAnEvent() throws {
        let replay = try Replay.read(path: Package.folder.path + "/Examples/Inputs/walk.gpx")
        #expect(replay.events.count == 10)
        #expect(replay.problems.isEmpty)
        #expect(Set(replay.events.map(\.userID)).count == 2)
    }

    @Test(
        .enabled(if: SharedData.exists("korita-zbevnica.gpx")),
        arguments: [("korita-zbevnica.gpx", 871, 3), ("Mojstrovka.gpx", 184, 1)])
    func aRealTrackHasAnEventForEachPoint(name: String, points: Int, tracks: Int) throws {
        let replay = try Replay.read(path: SharedData.path(name))
        #expect(replay.events.count == points)
        #expect(replay.problems.isEmpty)
        #expect(Set(replay.events.map(\.userID)).count == tracks)
    }
}
