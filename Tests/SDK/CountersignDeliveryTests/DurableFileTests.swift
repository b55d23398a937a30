import CountersignTesting
import Foundation
import Testing

@testable import CountersignDelivery

struct DurableFileTests {
    private let folder = TemporaryFolder()

    @Test func aFailedReplacementThrowsAndLeavesNoFile() throws {
        let path = folder.url.appendingPathComponent("taken")
        try FileManager.default.createDirectory(at: path, withIntermediateDirectories: true)
        #expect(throws: CocoaError.self) { try DurableFile.write(Data("new".utf8), to: path.path) }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["taken"])
    }
}
