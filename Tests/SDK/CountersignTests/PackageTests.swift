import Foundation
import Testing

/// Privacy manifests, Core Location references and the Swift version of the package.
struct PackageTests {
    private let package: URL = {
        var url = URL(fileURLWithPath: #filePath)
        for _ in 0..<4 { url.deleteLastPathComponent() }
        return url
    }()

    private func text(_ path: String) throws -> String {
        try String(contentsOf: package.appendingPathComponent(path), encoding: .utf8)
    }

    @Test(arguments: [
        (
            "Countersign", ["UserID", "DeviceID", "ProductInteraction", "OtherDiagnosticData"],
            ["FileTimestamp": ["C617.1"]]
        ),
        ("CountersignBloomreach", ["UserID", "DeviceID", "ProductInteraction", "OtherDiagnosticData"], [:]),
        ("CountersignDelivery", [], ["FileTimestamp": ["C617.1"], "SystemBootTime": ["35F9.1"]]),
        ("CountersignLocations", ["PreciseLocation", "OtherDiagnosticData"], [:]),
    ])
    func privacyManifestsListTheCollectedData(
        module: String, collected: [String], accessed: [String: [String]]
    ) throws {
        let file = package.appendingPathComponent("Sources/SDK/\(module)/PrivacyInfo.xcprivacy")
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
        var declared: [String: [String]] = [:]
        for interface in interfaces {
            let category = try #require(interface["NSPrivacyAccessedAPIType"] as? String)
            declared[category] = interface["NSPrivacyAccessedAPITypeReasons"] as? [String]
        }
        #expect(
            declared
                == Dictionary(
                    uniqueKeysWithValues: accessed.map { ("NSPrivacyAccessedAPICategory" + $0, $1) }))
    }

    /// Patterns of Apple's required-reason APIs. `clock_gettime` is not on Apple's list, but returns the same
    /// time as listed interfaces.
    private static let interfacesThatNeedAReason = [
        (
            "FileTimestamp",
            #"\b[fl]?stat(at)?\(|getattrlist|[mM]odificationDate|\.creationDate|contentAccessDate|st_[amc]tim"#
        ),
        ("SystemBootTime", #"systemUptime|mach_(absolute|continuous)_time|clock_gettime|uptimeNanoseconds"#),
        (
            "DiskSpace",
            #"volume(Available|Total)Capacity|systemFreeSize|systemSize|\bf?stat(v)?fs\(|attributesOfFileSystem"#
        ),
        ("ActiveKeyboards", "activeInputModes"), ("UserDefaults", "UserDefaults"),
    ]

    /// App Store Connect rejects an app that uses a required-reason API without declaring it.
    @Test func privacyManifestsDeclareEveryRequiredReasonAPIInUse() throws {
        // Each target with a manifest, together with its dependencies that have none.
        let manifests = [
            "SDK/CountersignDelivery": [
                "SDK/CountersignDelivery", "SDK/CountersignTransport", "SDK/CountersignCore",
                "SDK/CountersignSQLite",
            ],
            "SDK/Countersign": ["SDK/Countersign"],
            "SDK/CountersignBloomreach": ["SDK/CountersignBloomreach"],
            "SDK/CountersignLocations": ["SDK/CountersignLocations"],
            nil: [
                "SDK/BrazeCompat", "SDK/ExponeaCompat", "SDK/BackgroundGeolocationCompat",
                "SDK/CountersignC", "SDK/CountersignConsumer", "SDK/CountersignTesting",
            ],
        ]
        for (owner, modules) in manifests {
            var used: Set<String> = []
            for module in modules {
                let folder = package.appendingPathComponent("Sources/\(module)").path
                let files = try FileManager.default.subpathsOfDirectory(atPath: folder)
                    .filter { $0.hasSuffix(".swift") }
                #expect(!files.isEmpty)
                for file in files {
                    let text = try text("Sources/\(module)/\(file)")
                    for (category, pattern) in Self.interfacesThatNeedAReason
                    where text.range(of: pattern, options: .regularExpression) != nil {
                        used.insert(category)
                    }
                }
            }
            let manifest = try owner.map { try text("Sources/\($0)/PrivacyInfo.xcprivacy") } ?? ""
            let declared = Self.interfacesThatNeedAReason.map(\.0).filter {
                manifest.contains("<string>NSPrivacyAccessedAPICategory\($0)</string>")
            }
            #expect(used == Set(declared), "\(owner ?? "without a manifest")")
        }
    }

    /// App Store Connect requires a usage description of each app that refers to `CLLocationManager`.
    @Test func onlyCountersignLocationsImportsCoreLocation() throws {
        let sources = package.appendingPathComponent("Sources").path
        let modules = try FileManager.default.subpathsOfDirectory(atPath: sources)
            .filter { $0.hasSuffix(".swift") }
            .filter { try text("Sources/\($0)").contains("import CoreLocation\n") }
            .map { $0.components(separatedBy: "/")[..<2].joined(separator: "/") }
        #expect(Set(modules) == ["SDK/CountersignLocations"])
    }

    /// A Swift older than 6.3 fails with a clear error in the manifest, not at `@c @implementation` in a source.
    @Test func scriptsAndDocumentsNameTheRequiredSwiftVersion() throws {
        let manifest = try text("Package.swift")
        #expect(manifest.hasPrefix("// swift-tools-version: 6.3\n"))
        for folder in ["Benchmarks", "Examples", "Fuzzing"] {
            #expect(try text("\(folder)/Package.swift").hasPrefix("// swift-tools-version: 6.3\n"))
        }
        let setup = try text("scripts/setup.sh")
        #expect(setup.contains("minimum_major=6\nminimum_minor=3\n"))
        #expect(try text("packaging/Containerfile").contains("/swift:6.3-"))
        for page in [
            "README.md", "CONTRIBUTING.md", "docs/operating/install.md",
            "Sources/SDK/Countersign/Countersign.docc/InXcode.md",
            "Sources/SDK/Countersign/Countersign.docc/QuickStart.md",
        ] {
            let page = try text(page)
            #expect(page.contains("6.3"))
            #expect(!page.contains("Swift 6.2") && !page.contains("toolchain, 6.2"))
        }
    }

    @Test func warningsAreErrorsOnlyInStrictBuilds() throws {
        let uses = try text("Package.swift").components(separatedBy: "treatAllWarnings")
        #expect(uses.count == 2)
        #expect(uses[0].hasSuffix(#"Context.environment["COUNTERSIGN_STRICT"] == "1" ? [."#))
        #expect(try text("Makefile").contains("export COUNTERSIGN_STRICT := 1\n"))
    }
}
