// swift-tools-version: 6.2
import PackageDescription

let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

/// Samples are compiled as an app would: `import` makes a module's names public.
let sample: [SwiftSetting] = [.swiftLanguageMode(.v6), .treatAllWarnings(as: .error)]

let package = Package(
    name: "countersign",
    platforms: [.macOS(.v13), .iOS(.v15)],
    products: [
        .library(name: "Countersign", targets: ["Countersign"]),
        .library(name: "BrazeCompat", targets: ["BrazeCompat"]),
        .library(name: "ExponeaCompat", targets: ["ExponeaCompat"]),
        .library(name: "BackgroundGeolocationCompat", targets: ["BackgroundGeolocationCompat"]),
        .library(name: "CountersignC", type: .dynamic, targets: ["CountersignC"]),
        .library(name: "CountersignJOSE", targets: ["CountersignJOSE"]),
        .library(name: "CountersignGateway", targets: ["CountersignGateway"]),
        .library(name: "CountersignTesting", targets: ["CountersignTesting"]),
        .executable(name: "countersign", targets: ["CountersignCLI"]),
    ],
    targets: [
        // System libraries, from the distribution.
        .systemLibrary(
            name: "CSQLite", pkgConfig: "sqlite3",
            providers: [.apt(["libsqlite3-dev"]), .brew(["sqlite"])]),
        .systemLibrary(
            name: "COpenSSL", pkgConfig: "openssl",
            providers: [.apt(["libssl-dev"]), .brew(["openssl@3"])]),
        .systemLibrary(
            name: "CMicroHTTPD", pkgConfig: "libmicrohttpd",
            providers: [.apt(["libmicrohttpd-dev"]), .brew(["libmicrohttpd"])]),
        .systemLibrary(
            name: "CGnuTLS", pkgConfig: "gnutls",
            providers: [.apt(["libgnutls28-dev"]), .brew(["gnutls"])]),
        .systemLibrary(
            name: "CCurl", pkgConfig: "libcurl",
            providers: [.apt(["libcurl4-openssl-dev"]), .brew(["curl"])]),
        .systemLibrary(
            name: "CZlib", pkgConfig: "zlib",
            providers: [.apt(["zlib1g-dev"]), .brew(["zlib"])]),
        .systemLibrary(
            name: "CSimdjson",
            providers: [.apt(["libsimdjson-dev"]), .brew(["simdjson"])]),

        // What both ends share.
        .target(name: "CountersignCore", swiftSettings: strict),
        .target(
            name: "CountersignSQLite", dependencies: ["CountersignCore", "CSQLite"], swiftSettings: strict),

        // The SDK.
        .target(
            name: "Countersign",
            dependencies: [
                "CountersignCore", "CountersignSQLite",
                .target(name: "CCurl", condition: .when(platforms: [.linux])),
            ],
            resources: [.copy("PrivacyInfo.xcprivacy")],
            swiftSettings: strict),

        .target(
            name: "BrazeCompat", dependencies: ["Countersign", "CountersignCore"], swiftSettings: strict),
        .target(
            name: "BackgroundGeolocationCompat", dependencies: ["Countersign", "CountersignCore"],
            swiftSettings: strict),

        .target(
            name: "ExponeaCompat", dependencies: ["Countersign", "CountersignCore"], swiftSettings: strict),

        // The SDK for other languages.
        .target(name: "CCountersign"),
        .target(
            name: "CountersignC", dependencies: ["CCountersign", "Countersign", "CountersignCore"],
            swiftSettings: strict),

        // Tokens and the gateway.
        .target(
            name: "CStrictJSON", dependencies: ["CSimdjson"], linkerSettings: [.linkedLibrary("simdjson")]),
        .target(
            name: "CountersignJOSE",
            dependencies: ["CountersignCore", "COpenSSL", "CStrictJSON"],
            swiftSettings: strict),
        .target(name: "CHTTPServer", dependencies: ["CMicroHTTPD", "CGnuTLS"]),
        // The files of the dashboard, embedded.
        .target(name: "CDashboard"),
        .target(
            name: "CountersignGateway",
            dependencies: [
                "CountersignCore", "CountersignSQLite", "CountersignJOSE",
                "CStrictJSON", "CMicroHTTPD", "CHTTPServer", "CZlib", "CCurl", "CDashboard",
            ],
            exclude: ["Dashboard/Resources"], swiftSettings: strict),

        // Shipped help for tests.
        .target(
            name: "CountersignTesting",
            dependencies: ["CountersignCore", "Countersign", "CountersignJOSE", "CountersignGateway"],
            swiftSettings: strict),

        // The command line.
        .executableTarget(
            name: "CountersignCLI",
            dependencies: [
                "CountersignCore", "Countersign", "CountersignJOSE", "CountersignGateway", "COpenSSL",
            ],
            swiftSettings: strict),

        // Kills processes and power, and counts what is left: `make torture`.
        .executableTarget(
            name: "CountersignTorture",
            dependencies: [
                "Countersign", "CountersignCore", "CountersignGateway", "CountersignSQLite",
                "CountersignTesting",
            ],
            swiftSettings: strict),

        .testTarget(
            name: "CountersignCoreTests", dependencies: ["CountersignCore"], swiftSettings: strict),
        .testTarget(
            name: "CountersignSQLiteTests", dependencies: ["CountersignSQLite"], swiftSettings: strict),
        .testTarget(
            name: "CountersignTests",
            dependencies: [
                "Countersign", "CountersignCore", "CountersignGateway", "CountersignJOSE",
                "CountersignSQLite",
                "CountersignTesting",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "BackgroundGeolocationCompatTests",
            dependencies: [
                "BackgroundGeolocationCompat", "Countersign", "CountersignCore", "CountersignGateway",
                "CountersignSQLite", "CountersignTesting",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "BrazeCompatTests",
            dependencies: [
                "BrazeCompat", "Countersign", "CountersignCore", "CountersignGateway", "CountersignJOSE",
                "CountersignSQLite", "CountersignTesting",
            ],
            swiftSettings: strict),
        // The samples of the vendor's documentation, each in a module of its own since all name their class alike.
        .plugin(name: "ObjCNames", capability: .buildTool()),
        .target(
            name: "ExponeaSampleToken", dependencies: ["ExponeaCompat"], path: "Tests/ExponeaSamples/Token",
            exclude: ["Documented"], swiftSettings: sample, plugins: ["ObjCNames"]),
        .target(
            name: "ExponeaSampleAsynchronous", dependencies: ["ExponeaCompat"],
            path: "Tests/ExponeaSamples/Asynchronous", exclude: ["Documented"], swiftSettings: sample,
            plugins: ["ObjCNames"]),
        .target(
            name: "ExponeaSampleCaching", dependencies: ["ExponeaCompat"],
            path: "Tests/ExponeaSamples/Caching",
            exclude: ["Documented"], swiftSettings: sample, plugins: ["ObjCNames"]),
        .testTarget(
            name: "ExponeaCompatTests",
            dependencies: [
                "ExponeaCompat", "ExponeaSampleToken", "ExponeaSampleAsynchronous", "ExponeaSampleCaching",
                "Countersign", "CountersignCore", "CountersignGateway", "CountersignJOSE",
                "CountersignSQLite", "CountersignTesting",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "CountersignCTests",
            dependencies: [
                "CountersignC", "CountersignCore", "CountersignGateway", "CountersignJOSE",
                "CountersignSQLite", "CountersignTesting",
            ],
            exclude: ["Drivers"], swiftSettings: strict),
        .testTarget(
            name: "CountersignJOSETests",
            dependencies: ["CountersignJOSE", "CountersignCore", "CountersignTesting"],
            swiftSettings: strict),
        .testTarget(
            name: "CountersignGatewayTests",
            dependencies: [
                "CountersignGateway", "CountersignCore", "CountersignSQLite", "CountersignJOSE",
                "CountersignTesting",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "CountersignCLITests",
            dependencies: ["CountersignCLI", "CountersignCore", "CountersignTesting"],
            swiftSettings: strict),
    ],
    cxxLanguageStandard: .cxx17
)
