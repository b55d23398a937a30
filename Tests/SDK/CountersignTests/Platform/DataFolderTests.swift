import CountersignTesting
import Foundation
import SDKTestSupport
import TestSupport
import Testing

@testable import Countersign
@testable import CountersignDelivery

/// The default location of queues.
@Suite(.closing)
struct DataFolderTests {
    private let temporary = TemporaryFolder()
    private var shared: URL { temporary.url }

    private func folder(_ appID: String = "com.example.notes", _ writeKey: String = "wk_1") -> DataFolder {
        DataFolder(shared: shared, appID: appID, writeKey: writeKey)
    }

    @Test func appsAndKeysHaveFoldersOfTheirOwn() {
        let names = [
            folder().name, folder("com.example.tasks").name, folder("com.example.notes", "wk_2").name,
        ]
        #expect(Set(names).count == 3)
        #expect(names[0] == folder().name, "the name is the same in each run")
        #expect(
            names.allSatisfy { $0.range(of: "^[a-z.]+-[0-9a-f]{16}$", options: .regularExpression) != nil })
        #expect(!names[0].contains("wk_1"))
    }

    @Test func folderNamesAreValidOnEveryFileSystem() {
        #expect(folder("../a b/ö").name.hasPrefix(".._a_b___-"))
        #expect(folder(String(repeating: "x", count: 500)).name.utf8.count == 117)
    }

    @Test func anOptOutAppliesToAllKeysOfAnApp() throws {
        func hasOptedOut(_ directory: URL) -> Bool {
            FileManager.default.fileExists(
                atPath: directory.appendingPathComponent(DataFolder.optOutName).path)
        }
        let first = folder("com.example.notes-pro").directory(of: "default")
        try FileManager.default.createDirectory(at: first, withIntermediateDirectories: true)
        try Data().write(to: first.appendingPathComponent(DataFolder.optOutName))
        let other = folder("com.example.notes-pro", "wk_2")
        #expect(hasOptedOut(other.directory(of: "default")))
        #expect(!hasOptedOut(other.directory(of: "other")))
        for appID in ["com.example.notes", "com.example.tasks-pro"] {
            #expect(!hasOptedOut(folder(appID, "wk_2").directory(of: "default")), "\(appID)")
        }
    }

    @Test func theDefaultDirectoryContainsTheAppsID() throws {
        let url = try #require(URL(string: "https://gateway.example"))
        var configuration = CountersignConfiguration(endpoint: url, writeKey: "wk_folder_test")
        configuration.instanceName = "unused"
        let parts = configuration.instanceDirectory.pathComponents.suffix(3)
        #expect(parts.first == "Countersign" && parts.last == "unused")
        #expect(parts.dropFirst().first?.hasPrefix(DataFolder.ownAppID) == true)
        #expect(!DataFolder.ownAppID.isEmpty)
    }

    @Test(arguments: [
        "/private/var/mobile/Containers/Shared/AppGroup/5D9E-11/queue",
        "/var/mobile/Containers/Shared/AppGroup/5D9E-11",
        "/Users/a/Library/Developer/CoreSimulator/Devices/1/data/Containers/Shared/AppGroup/2/x",
    ])
    func theContainerOfAnAppGroupIsRejected(path: String) throws {
        var bench = try Bench()
        bench.configuration.dataDirectory = URL(fileURLWithPath: path)
        let error = #expect(throws: CountersignError.self) { try bench.makeClient() }
        #expect(error?.code == .invalidConfiguration)
        #expect(error?.detail.contains("app group") == true)
    }

    @Test func theContainerOfAnAppIsNotThatOfAnAppGroup() {
        #expect(!DataFolder.isInAppGroup("/var/mobile/Containers/Data/Application/5D9E-11/Library"))
    }

    @Test func permissionsOfAnExistingFolderAreSetAtEachOpen() async throws {
        let bench = try Bench()
        let directory = bench.configuration.instanceDirectory
        let files = FileManager.default
        func mode(_ name: String) throws -> Int? {
            try files.attributesOfItem(atPath: directory.appendingPathComponent(name).path)[.posixPermissions]
                as? Int
        }
        try files.createDirectory(
            at: directory.appendingPathComponent("tokens"), withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o755])
        for name in ["opted-in", "user.json", "tokens/tokens.json"] {
            try Data("{}".utf8).write(to: directory.appendingPathComponent(name))
            try files.setAttributes(
                [.posixPermissions: 0o644], ofItemAtPath: directory.appendingPathComponent(name).path)
        }
        let client = try bench.makeClient()
        try await client.record("A")
        await client.close()
        #expect(try mode("") == 0o700)
        #expect(try mode("tokens") == 0o700)
        for name in ["queue.sqlite", "opted-in", "tokens/tokens.json"] {
            #expect(try mode(name) == 0o600, "\(name)")
        }
        #expect(try mode("user.json") == 0o644, "the attributes of user.json are set when it is written")
    }
}
