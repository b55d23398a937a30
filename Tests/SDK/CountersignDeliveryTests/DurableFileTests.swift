import CountersignCore
import CountersignTesting
import Foundation
import TestSupport
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

    @Test func temporaryFilesOfKilledProcessesAreDeletedAfterAnHour() throws {
        let file = folder.url.appendingPathComponent("file").path
        try DurableFile.write(Data(), to: file)
        for (name, age) in [(".new-recent", 0.0), (".new-old", 3_700)] {
            let path = folder.url.appendingPathComponent(name).path
            try Data().write(to: URL(fileURLWithPath: path))
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSinceNow: -age)], ofItemAtPath: path)
        }
        try DurableFile.write(Data(), to: file)
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(names.sorted() == [".new-recent", "file"])
    }

    /// Tests copy the files of running clients, which replace them meanwhile.
    @Test func aFolderCanBeCopiedWhileItsFilesAreReplaced() async throws {
        let source = folder.url.appendingPathComponent("source")
        let file = source.appendingPathComponent("file").path
        try DurableFile.write(Data("text".utf8), to: file)
        let isCopied = Lock(false)
        async let replacements: Void = {
            while !isCopied.withLock({ $0 }) { try DurableFile.write(Data("text".utf8), to: file) }
        }()
        defer { isCopied.withLock { $0 = true } }
        for number in 0..<200 {
            let target = folder.url.appendingPathComponent("copy-\(number)")
            try copyRunning(source, to: target)
            #expect(try Data(contentsOf: target.appendingPathComponent("file")) == Data("text".utf8))
        }
        isCopied.withLock { $0 = true }
        try await replacements
    }
}
