import Foundation
import Testing

/// What an app takes with it when it adds the package.
struct PackageTests {
    private let package: URL = {
        var url = URL(fileURLWithPath: #filePath)
        for _ in 0..<3 { url.deleteLastPathComponent() }
        return url
    }()

    private func text(_ path: String) throws -> String {
        try String(contentsOf: package.appendingPathComponent(path), encoding: .utf8)
    }

    @Test(arguments: [
        ("Countersign", ["UserID", "DeviceID", "ProductInteraction"], ["SystemBootTime"]),
        ("CountersignLocations", ["PreciseLocation"], []),
    ])
    func privacyManifestsSayWhatIsCollected(module: String, collected: [String], accessed: [String]) throws {
        let file = package.appendingPathComponent("Sources/\(module)/PrivacyInfo.xcprivacy")
        let manifest = try #require(
            try PropertyListSerialization.propertyList(from: Data(contentsOf: file), format: nil)
                as? [String: Any])
        #expect(manifest["NSPrivacyTracking"] as? Bool == false)
        #expect((manifest["NSPrivacyTrackingDomains"] as? [String])?.isEmpty == true)
        let types = try #require(manifest["NSPrivacyCollectedDataTypes"] as? [[String: Any]])
        #expect(
            types.map { $0["NSPrivacyCollectedDataType"] as? String }
                == collected.map { "NSPrivacyCollectedDataType" + $0 })
        for type in types {
            #expect(type["NSPrivacyCollectedDataTypeLinked"] as? Bool == true)
            #expect(type["NSPrivacyCollectedDataTypeTracking"] as? Bool == false)
            #expect((type["NSPrivacyCollectedDataTypePurposes"] as? [String])?.isEmpty == false)
        }
        let interfaces = try #require(manifest["NSPrivacyAccessedAPITypes"] as? [[String: Any]])
        #expect(
            interfaces.map { $0["NSPrivacyAccessedAPIType"] as? String }
                == accessed.map { "NSPrivacyAccessedAPICategory" + $0 })
    }

    /// A reference to `CLLocationManager` is enough for an app to be asked for a usage description.
    @Test func onlyTheProductForLocationsRefersToCoreLocation() throws {
        let sources = package.appendingPathComponent("Sources").path
        let modules = try FileManager.default.subpathsOfDirectory(atPath: sources)
            .filter { $0.hasSuffix(".swift") }
            .filter { try text("Sources/\($0)").contains("import CoreLocation\n") }
            .map { $0.components(separatedBy: "/")[0] }
        #expect(Set(modules) == ["CountersignLocations"])
        #expect(!modules.isEmpty)
    }

    /// `@c @implementation` is of Swift 6.3: who has an older one is told so by the manifest, not by an error in a file.
    @Test func everyPlaceNamesTheSwiftThatIsNeeded() throws {
        let manifest = try text("Package.swift")
        #expect(manifest.hasPrefix("// swift-tools-version: 6.3\n"))
        for folder in ["Benchmarks", "Examples", "Fuzzing"] {
            #expect(try text("\(folder)/Package.swift").hasPrefix("// swift-tools-version: 6.3\n"))
        }
        let setup = try text("scripts/setup.sh")
        #expect(setup.contains("minimum_major=6\nminimum_minor=3\n"))
        #expect(try text("packaging/Containerfile").contains("/swift:6.3-"))
        for page in [
            "README.md", "CONTRIBUTING.md", "docs/install.md",
            "Sources/Countersign/Countersign.docc/InXcode.md",
            "Sources/Countersign/Countersign.docc/QuickStart.md",
        ] {
            let page = try text(page)
            #expect(page.contains("6.3"))
            #expect(!page.contains("Swift 6.2") && !page.contains("toolchain, 6.2"))
        }
    }

    @Test func warningsAreErrorsOnlyForThoseWhoWorkOnThePackage() throws {
        let uses = try text("Package.swift").components(separatedBy: "treatAllWarnings")
        #expect(uses.count == 2)
        #expect(uses[0].hasSuffix(#"Context.environment["COUNTERSIGN_STRICT"] == "1" ? [."#))
        #expect(try text("Makefile").contains("export COUNTERSIGN_STRICT := 1\n"))
    }
}
