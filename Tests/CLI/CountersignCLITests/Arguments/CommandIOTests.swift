import Testing

struct CommandIOTests {
    #if os(Linux)
        @Test func aFullDiskIsAFailureWithItsReason() async throws {
            let folder = TemporaryFolder()
            let result = try await Shell(folder: folder.path).run("countersign version > /dev/full")
            #expect(result.status == 1)
            #expect(result.talk == "countersign: cannot write to standard output: No space left on device\n")
        }
    #endif
}
