// swift-tools-version: 6.3
import PackageDescription

// A separate package, because users of the SDK and the gateway do not need it. `make prove` builds and runs it.
let package = Package(
    name: "torture",
    platforms: [.macOS(.v13)],
    dependencies: [.package(name: "countersign", path: "..")],
    targets: [
        .systemLibrary(
            name: "CSQLite3", pkgConfig: "sqlite3",
            providers: [.apt(["libsqlite3-dev"]), .brew(["sqlite"])]),
        // Crash tests of the SDK.
        .executableTarget(
            name: "CountersignTorture",
            dependencies: [
                "CSQLite3",
                .product(name: "Countersign", package: "countersign"),
                .product(name: "CountersignLocations", package: "countersign"),
                .product(name: "CountersignGateway", package: "countersign"),
                .product(name: "CountersignGatewayTesting", package: "countersign"),
            ],
            swiftSettings: [
                .swiftLanguageMode(.v6), .treatAllWarnings(as: .error),
                .enableUpcomingFeature("ExistentialAny"), .enableUpcomingFeature("InternalImportsByDefault"),
                // As in the gateway's targets, because cross-module optimization crashes the compiler.
                .unsafeFlags(["-disable-cmo"], .when(configuration: .release)),
            ]),
    ]
)
