// swift-tools-version: 6.3
import PackageDescription

/// `make` turns warnings into errors. In a package that depends on this package, the build system passes
/// `-suppress-warnings`, which the compiler rejects together with `-warnings-as-errors`.
let warnings: [SwiftSetting] =
    Context.environment["COUNTERSIGN_STRICT"] == "1" ? [.treatAllWarnings(as: .error)] : []

/// Empty if the package was added by URL: the build system rejects unsafe flags there.
func unsafeFlag(_ flag: String, in configuration: BuildConfiguration) -> [SwiftSetting] {
    Context.packageDirectory.contains("/checkouts/")
        ? [] : [.unsafeFlags([flag], .when(configuration: configuration))]
}

/// Swift 6.3's cross-module optimizer crashes (DeadFunctionAndGlobalElimination) for an executable that links
/// the gateway's targets.
let optimization =
    unsafeFlag("-disable-cmo", in: .release)
    // Overlapping accesses are found when compiling and, at run time, by debug builds, which run all tests. In a
    // release, the checks of each access to a property of an object are 5 % of the instructions of a request.
    + unsafeFlag("-enforce-exclusivity=unchecked", in: .release)

/// Optimizes the base targets in debug builds too. They compile in seconds, and tests take a tenth less.
let optimizedAlways = unsafeFlag("-O", in: .debug)

/// COUNTERSIGN_NATS=1 swift build: builds streams over NATS, with libnats. Other builds report an error for a stream.
let hasNATS = Context.environment["COUNTERSIGN_NATS"] == "1"

/// COUNTERSIGN_POSTGRESQL=0 swift build: builds without libpq, with storage in SQLite only.
let hasPostgreSQL = Context.environment["COUNTERSIGN_POSTGRESQL"] != "0"

/// Compiles samples as an app does: `import` is public.
let sample: [SwiftSetting] = [.swiftLanguageMode(.v6)] + warnings

let strict: [SwiftSetting] =
    [
        .swiftLanguageMode(.v6),
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
    ] + warnings + optimization

let nats: [Target.Dependency] = hasNATS ? ["GatewayNATS"] : []
let postgreSQL: [Target.Dependency] = hasPostgreSQL ? ["GatewayPostgreSQL"] : []
let optionalFeatures: [SwiftSetting] =
    (hasNATS ? [.define("NATS")] : []) + (hasPostgreSQL ? [.define("POSTGRESQL")] : [])

let systemLibraries: [Target] = [
    // System libraries. SQLite and zlib belong to each platform of the SDK, so they are found without pkg-config,
    // which would give a build for iOS the paths of the Mac.
    .systemLibrary(name: "CSQLite", path: "Sources/CShims/CSQLite"),
    .systemLibrary(
        name: "COpenSSL", path: "Sources/CShims/COpenSSL", pkgConfig: "openssl",
        providers: [.apt(["libssl-dev"]), .brew(["openssl@3"])]),
    .systemLibrary(
        name: "CCurl", path: "Sources/CShims/CCurl", pkgConfig: "libcurl",
        providers: [.apt(["libcurl4-openssl-dev"]), .brew(["curl"])]),
    .systemLibrary(name: "CZlib", path: "Sources/CShims/CZlib"),
    .systemLibrary(
        name: "CZstd", path: "Sources/CShims/CZstd", pkgConfig: "libzstd",
        providers: [.apt(["libzstd-dev"]), .brew(["zstd"])]),
    .systemLibrary(
        name: "CQREncode", path: "Sources/CShims/CQREncode", pkgConfig: "libqrencode",
        providers: [.apt(["libqrencode-dev"]), .brew(["qrencode"])]),
    .systemLibrary(
        name: "CSimdjson", path: "Sources/CShims/CSimdjson",
        providers: [.apt(["libsimdjson-dev"]), .brew(["simdjson"])]),
]

let sdk: [Target] = [
    // Shared by the SDK and the gateway.
    .target(
        name: "CountersignCore", dependencies: ["CZlib"], path: "Sources/SDK/CountersignCore",
        swiftSettings: strict + optimizedAlways),
    .target(
        name: "CountersignSQLite", dependencies: ["CountersignCore", "CSQLite"],
        path: "Sources/SDK/CountersignSQLite",
        swiftSettings: strict + optimizedAlways),
    // Requests of the gateway, and of the SDK on Linux, over libcurl.
    .target(
        name: "CountersignCurl", dependencies: ["CCurl"], path: "Sources/SDK/CountersignCurl",
        swiftSettings: strict),

    // The SDK. Imports point up: each target may use those above it here.
    // HTTP requests and the time.
    .target(
        name: "CountersignTransport",
        dependencies: [
            "CountersignCore", .target(name: "CountersignCurl", condition: .when(platforms: [.linux])),
            .target(name: "CCurl", condition: .when(platforms: [.linux])),
        ],
        path: "Sources/SDK/CountersignTransport", swiftSettings: strict),
    // Stores records until a server has accepted them. Independent of users and vendors.
    .target(
        name: "CountersignDelivery",
        dependencies: ["CountersignCore", "CountersignSQLite", "CountersignTransport"],
        path: "Sources/SDK/CountersignDelivery", resources: [.copy("PrivacyInfo.xcprivacy")],
        swiftSettings: strict),
    // Events of users, sent with the user's token.
    .target(
        name: "Countersign",
        dependencies: ["CountersignCore", "CountersignDelivery", "CountersignTransport"],
        path: "Sources/SDK/Countersign", resources: [.copy("PrivacyInfo.xcprivacy")],
        swiftSettings: strict),
    .target(
        name: "CountersignBloomreach",
        dependencies: ["CountersignCore", "CountersignDelivery", "CountersignTransport"],
        path: "Sources/SDK/CountersignBloomreach", resources: [.copy("PrivacyInfo.xcprivacy")],
        swiftSettings: strict),
    // A separate target, so that only an app that records locations refers to Core Location.
    .target(
        name: "CountersignLocations",
        dependencies: ["CountersignCore", "CountersignDelivery", "CountersignTransport"],
        path: "Sources/SDK/CountersignLocations", resources: [.copy("PrivacyInfo.xcprivacy")],
        swiftSettings: strict),

    // The APIs of other vendors' SDKs, under the vendors' names.
    .target(
        name: "BrazeCompat",
        dependencies: ["Countersign", "CountersignCore", "CountersignDelivery", "CountersignTransport"],
        path: "Sources/SDK/BrazeCompat", swiftSettings: strict),
    .target(
        name: "BackgroundGeolocationCompat",
        dependencies: [
            "CountersignCore", "CountersignDelivery", "CountersignLocations", "CountersignTransport",
        ],
        path: "Sources/SDK/BackgroundGeolocationCompat", swiftSettings: strict),
    .target(
        name: "ExponeaCompat",
        dependencies: [
            "CountersignBloomreach", "CountersignCore", "CountersignDelivery", "CountersignTransport",
        ],
        path: "Sources/SDK/ExponeaCompat", swiftSettings: strict),

    // The SDK for other languages.
    .target(name: "CCountersign", path: "Sources/SDK/CCountersign"),
    .target(
        name: "CountersignC",
        dependencies: [
            "CCountersign", "Countersign", "CountersignBloomreach", "CountersignCore",
            "CountersignDelivery",
            "CountersignLocations", "CountersignTransport",
        ],
        path: "Sources/SDK/CountersignC", exclude: ["countersign.map"], swiftSettings: strict),
]

let gateway: [Target] = [
    // Tokens and the gateway.
    .target(
        name: "CStrictJSON", dependencies: ["CSimdjson"],
        path: "Sources/CShims/CStrictJSON", linkerSettings: [.linkedLibrary("simdjson")]),
    // A strict JSON parser over simdjson. The SDK has its own reader, of CountersignCore: docs/adr/0034.
    .target(
        name: "CountersignJSON", dependencies: ["CountersignCore", "CStrictJSON"],
        path: "Sources/Gateway/CountersignJSON", swiftSettings: strict),
    // Hashes, authentication codes, encryption, X.509 and base64url, over OpenSSL.
    .target(
        name: "CountersignCrypto", dependencies: ["CountersignCore", "COpenSSL"],
        path: "Sources/Gateway/CountersignCrypto", swiftSettings: strict),
    .target(
        name: "CountersignJOSE",
        dependencies: ["CountersignCore", "CountersignCrypto", "CountersignJSON", "COpenSSL"],
        path: "Sources/Gateway/CountersignJOSE",
        swiftSettings: strict),
    // For backends that read events: over the SDK's transport. Apple's systems have HMAC themselves.
    .target(
        name: "CountersignConsumer",
        dependencies: [
            "CountersignCore", "CountersignDelivery", "CountersignTransport",
            .target(name: "CountersignCrypto", condition: .when(platforms: [.linux])),
        ],
        path: "Sources/SDK/CountersignConsumer",
        swiftSettings: strict),
    .target(
        name: "CHTTPServer", dependencies: ["COpenSSL"], path: "Sources/CShims/CHTTPServer",
        linkerSettings: [.linkedLibrary("ssl")]),
    // The files of the dashboard, embedded.
    .target(name: "CDashboard", path: "Sources/CShims/CDashboard", exclude: ["Resources"]),
    // The table of common passwords, embedded.
    .target(
        name: "CCommonPasswords", path: "Sources/CShims/CCommonPasswords",
        exclude: ["NOTICE", "common-passwords.bin"]),
    // The gateway. Imports point up, as in the SDK: each target may use the targets above it here.
    // The gateway's domain, without I/O.
    .target(
        name: "GatewayModel",
        dependencies: ["CountersignCore", "CountersignJOSE", "CountersignCrypto", "CountersignJSON"],
        path: "Sources/Gateway/GatewayModel",
        swiftSettings: strict),
    // HTTP requests and responses.
    .target(
        name: "GatewayHTTP",
        dependencies: [
            "GatewayModel", "CountersignCore", "CHTTPServer", "CZlib", "CCurl", "CountersignCurl",
        ],
        path: "Sources/Gateway/GatewayHTTP",
        swiftSettings: strict),
    // Storage in SQLite and files, and the SQL that PostgreSQL shares with SQLite.
    .target(
        name: "GatewayStorage",
        dependencies: [
            "GatewayModel", "CountersignCore", "CountersignSQLite", "CountersignJOSE",
            "CountersignCrypto", "CountersignJSON", "CZlib",
        ],
        path: "Sources/Gateway/GatewayStorage",
        swiftSettings: strict),
    // Metrics, the log, and the dashboard's counters.
    .target(
        name: "GatewayObservability",
        dependencies: ["GatewayModel", "CountersignCore", "CountersignJSON"],
        path: "Sources/Gateway/GatewayObservability", swiftSettings: strict),
    // Ingestion: admission of requests, tokens and their service, and the dialects, one folder each.
    .target(
        name: "GatewayIngest",
        dependencies: [
            "GatewayModel", "GatewayHTTP", "GatewayStorage", "GatewayObservability", "CountersignCore",
            "CountersignJOSE", "CountersignCrypto", "CountersignJSON",
        ],
        path: "Sources/Gateway/GatewayIngest",
        swiftSettings: strict),
    // Delivers stored events: to readers, webhooks, files and streams.
    .target(
        name: "GatewayDelivery",
        dependencies: [
            "GatewayModel", "GatewayHTTP", "GatewayStorage", "GatewayObservability", "GatewayIngest",
            "CountersignCore", "CountersignSQLite", "CountersignCrypto", "CountersignJSON", "CZstd",
        ],
        path: "Sources/Gateway/GatewayDelivery",
        swiftSettings: strict),
    // The admin API and the dashboard.
    .target(
        name: "GatewayAdmin",
        dependencies: [
            "GatewayModel", "GatewayHTTP", "GatewayStorage", "GatewayObservability", "GatewayIngest",
            "GatewayDelivery", "CountersignCore", "CountersignJOSE", "CountersignCrypto",
            "CountersignJSON", "CDashboard",
            "CCommonPasswords",
            "CQREncode",
        ],
        path: "Sources/Gateway/GatewayAdmin",
        swiftSettings: strict),
    // The complete gateway.
    .target(
        name: "CountersignGateway",
        dependencies: [
            "GatewayModel", "GatewayHTTP", "GatewayStorage", "GatewayObservability", "GatewayIngest",
            "GatewayDelivery", "GatewayAdmin",
            "CountersignCore", "CountersignJOSE",
        ] + nats + postgreSQL,
        path: "Sources/Gateway/CountersignGateway",
        swiftSettings: strict + optionalFeatures),

    // Public test helpers: for apps, and for tests that run a gateway.
    .target(
        name: "CountersignTesting", dependencies: ["CountersignCore", "CountersignTransport"],
        path: "Sources/SDK/CountersignTesting",
        swiftSettings: strict),
    .target(
        name: "CountersignGatewayTesting",
        dependencies: [
            "GatewayHTTP", "CountersignCore", "CountersignJOSE", "CountersignGateway",
            "CountersignSQLite",
            "GatewayModel", "GatewayStorage",
        ] + postgreSQL,
        path: "Sources/Gateway/CountersignGatewayTesting",
        swiftSettings: strict + optionalFeatures),

    // The command line.
    .executableTarget(
        name: "CountersignCLI",
        dependencies: [
            "CountersignCore", "Countersign", "CountersignLocations", "CountersignJOSE",
            "CountersignCrypto", "CountersignJSON", "CountersignGateway", "GatewayAdmin", "GatewayHTTP",
            "GatewayModel", "GatewayStorage", "COpenSSL", "CountersignDelivery", "CountersignTransport",
        ],
        path: "Sources/CLI",
        swiftSettings: strict),
]

let tests: [Target] = [
    // Helpers of all tests, of the SDK's tests, and of the gateway's tests.
    .target(
        name: "TestSupport", dependencies: ["CountersignCore"], path: "Tests/Support", swiftSettings: strict),
    .target(
        name: "SDKTestSupport",
        dependencies: [
            "CountersignBloomreach", "CountersignCore", "CountersignDelivery", "CountersignLocations",
            "CountersignTesting", "CountersignTransport", "TestSupport",
        ], path: "Tests/SDK/Support", swiftSettings: strict),
    .target(
        name: "GatewayTestSupport",
        dependencies: [
            "CZlib", "CountersignCore", "CountersignCrypto", "CountersignGateway",
            "CountersignGatewayTesting", "CountersignJOSE", "CountersignSQLite", "CountersignTesting",
            "GatewayIngest", "GatewayModel", "GatewayStorage", "TestSupport",
        ], path: "Tests/Gateway/Support", swiftSettings: strict),

    .testTarget(
        name: "CountersignCoreTests", dependencies: ["CountersignCore", "TestSupport"],
        path: "Tests/SDK/CountersignCoreTests", swiftSettings: strict),
    .testTarget(
        name: "CountersignSQLiteTests", dependencies: ["CSQLite", "CountersignCore", "CountersignSQLite"],
        path: "Tests/SDK/CountersignSQLiteTests", swiftSettings: strict),
    .testTarget(
        name: "CountersignTransportTests",
        dependencies: ["CountersignTesting", "CountersignTransport", "TestSupport"],
        path: "Tests/SDK/CountersignTransportTests", swiftSettings: strict),
    .testTarget(
        name: "CountersignDeliveryTests",
        dependencies: [
            "CountersignCore", "CountersignDelivery", "CountersignSQLite", "CountersignTesting",
            "CountersignTransport", "SDKTestSupport", "TestSupport",
        ], path: "Tests/SDK/CountersignDeliveryTests", swiftSettings: strict),
    .testTarget(
        name: "CountersignTests",
        dependencies: [
            "CSQLite", "Countersign", "CountersignBloomreach", "CountersignCore", "CountersignDelivery",
            "CountersignGateway", "CountersignGatewayTesting", "CountersignLocations", "CountersignSQLite",
            "CountersignTesting", "CountersignTransport", "GatewayModel", "SDKTestSupport", "TestSupport",
        ], path: "Tests/SDK/CountersignTests", swiftSettings: strict),
    .testTarget(
        name: "CountersignBloomreachTests",
        dependencies: [
            "CountersignBloomreach", "CountersignCore", "CountersignDelivery", "CountersignGateway",
            "CountersignGatewayTesting", "CountersignJOSE", "CountersignTesting", "CountersignTransport",
            "GatewayModel", "GatewayStorage", "SDKTestSupport", "TestSupport",
        ], path: "Tests/SDK/CountersignBloomreachTests", swiftSettings: strict),
    .testTarget(
        name: "CountersignLocationsTests",
        dependencies: [
            "CountersignCore", "CountersignDelivery", "CountersignLocations", "CountersignTesting",
            "CountersignTransport", "SDKTestSupport", "TestSupport",
        ], path: "Tests/SDK/CountersignLocationsTests", swiftSettings: strict),
    .testTarget(
        name: "CountersignCTests",
        dependencies: [
            "CCountersign", "CountersignC", "CountersignCore", "CountersignDelivery", "CountersignTesting",
        ], path: "Tests/SDK/CountersignCTests", swiftSettings: strict),
    .testTarget(
        name: "CountersignConsumerTests",
        dependencies: [
            "CountersignConsumer", "CountersignCore", "CountersignCrypto", "CountersignTesting",
            "CountersignTransport",
        ], path: "Tests/SDK/CountersignConsumerTests", swiftSettings: strict),
    // The scenarios of Conformance, run with the SDK's clients.
    .testTarget(
        name: "ConformanceTests",
        dependencies: [
            "Countersign", "CountersignBloomreach", "CountersignCore", "CountersignDelivery",
            "CountersignLocations", "CountersignTesting", "CountersignTransport", "SDKTestSupport",
            "TestSupport",
        ], path: "Tests/SDK/ConformanceTests", swiftSettings: strict),
    .testTarget(
        name: "BackgroundGeolocationCompatTests",
        dependencies: [
            "BackgroundGeolocationCompat", "CountersignCore", "CountersignDelivery", "CountersignGateway",
            "CountersignGatewayTesting", "CountersignTesting", "CountersignTransport", "GatewayModel",
            "SDKTestSupport", "TestSupport",
        ], path: "Tests/SDK/BackgroundGeolocationCompatTests", swiftSettings: strict),
    .testTarget(
        name: "BrazeCompatTests",
        dependencies: [
            "BrazeCompat", "Countersign", "CountersignCore", "CountersignDelivery", "CountersignGateway",
            "CountersignGatewayTesting", "CountersignTesting", "CountersignTransport", "TestSupport",
        ], path: "Tests/SDK/BrazeCompatTests", swiftSettings: strict),
    // Samples of Bloomreach's documentation. Each has its own module, because their classes have the same name.
    .plugin(name: "ObjCNames", capability: .buildTool()),
    .target(
        name: "ExponeaSampleToken", dependencies: ["ExponeaCompat"], path: "Tests/SDK/ExponeaSamples/Token",
        exclude: ["Documented"], swiftSettings: sample, plugins: ["ObjCNames"]),
    .target(
        name: "ExponeaSampleAsynchronous", dependencies: ["ExponeaCompat"],
        path: "Tests/SDK/ExponeaSamples/Asynchronous", exclude: ["Documented"], swiftSettings: sample,
        plugins: ["ObjCNames"]),
    .target(
        name: "ExponeaSampleCaching", dependencies: ["ExponeaCompat"],
        path: "Tests/SDK/ExponeaSamples/Caching",
        exclude: ["Documented"], swiftSettings: sample, plugins: ["ObjCNames"]),
    .testTarget(
        name: "ExponeaCompatTests",
        dependencies: [
            "CountersignBloomreach", "CountersignCore", "CountersignGateway", "CountersignGatewayTesting",
            "CountersignJOSE", "CountersignTesting", "CountersignTransport", "ExponeaCompat",
            "ExponeaSampleAsynchronous", "ExponeaSampleCaching", "ExponeaSampleToken", "GatewayModel",
            "TestSupport",
        ], path: "Tests/SDK/ExponeaCompatTests", swiftSettings: strict),

    .testTarget(
        name: "CountersignCryptoTests", dependencies: ["CountersignCrypto"],
        path: "Tests/Gateway/CountersignCryptoTests", swiftSettings: strict),
    .testTarget(
        name: "CountersignJSONTests", dependencies: ["CountersignJSON"],
        path: "Tests/Gateway/CountersignJSONTests", swiftSettings: strict),
    .testTarget(
        name: "CountersignJOSETests",
        dependencies: ["CountersignCore", "CountersignCrypto", "CountersignJOSE", "CountersignJSON"],
        path: "Tests/Gateway/CountersignJOSETests", swiftSettings: strict),
    .testTarget(
        name: "GatewayModelTests",
        dependencies: ["CountersignCore", "GatewayModel", "GatewayTestSupport", "TestSupport"],
        path: "Tests/Gateway/GatewayModelTests", swiftSettings: strict),
    .testTarget(
        name: "GatewayHTTPTests",
        dependencies: [
            "CCurl", "CountersignCore", "CountersignCurl", "CountersignGateway", "CountersignGatewayTesting",
            "GatewayHTTP", "GatewayModel", "GatewayTestSupport", "TestSupport",
        ], path: "Tests/Gateway/GatewayHTTPTests", swiftSettings: strict),
    .testTarget(
        name: "GatewayStorageTests",
        dependencies: [
            "CountersignCore", "CountersignCrypto", "CountersignGateway", "CountersignGatewayTesting",
            "CountersignJOSE", "CountersignSQLite", "CountersignTesting", "GatewayModel", "GatewayStorage",
            "GatewayTestSupport", "TestSupport",
        ], path: "Tests/Gateway/GatewayStorageTests", swiftSettings: strict),
    .testTarget(
        name: "GatewayObservabilityTests",
        dependencies: [
            "CountersignCore", "GatewayModel", "GatewayObservability", "GatewayTestSupport", "TestSupport",
        ], path: "Tests/Gateway/GatewayObservabilityTests", swiftSettings: strict),
    .testTarget(
        name: "GatewayIngestTests",
        dependencies: [
            "CountersignCore", "CountersignCrypto", "CountersignGateway", "CountersignGatewayTesting",
            "CountersignSQLite",
            "CountersignJOSE", "CountersignJSON", "CountersignTesting", "GatewayDelivery", "GatewayHTTP",
            "GatewayIngest",
            "GatewayModel", "GatewayObservability", "GatewayStorage", "GatewayTestSupport",
        ], path: "Tests/Gateway/GatewayIngestTests", swiftSettings: strict),
    .testTarget(
        name: "GatewayDeliveryTests",
        dependencies: [
            "CountersignConsumer", "CountersignCore", "CountersignCrypto", "CountersignGateway",
            "CountersignGatewayTesting", "CountersignJOSE", "CountersignJSON", "CountersignSQLite",
            "CountersignTesting", "GatewayHTTP", "GatewayModel", "GatewayObservability", "GatewayStorage",
            "GatewayDelivery", "GatewayTestSupport", "TestSupport",
        ], path: "Tests/Gateway/GatewayDeliveryTests", swiftSettings: strict + optionalFeatures),
    .testTarget(
        name: "GatewayAdminTests",
        dependencies: [
            "CountersignCore", "CountersignCrypto", "CountersignGateway", "CountersignGatewayTesting",
            "CountersignJOSE", "CountersignSQLite", "CountersignTesting", "GatewayAdmin", "GatewayHTTP",
            "GatewayIngest", "GatewayModel", "GatewayStorage", "GatewayTestSupport",
        ], path: "Tests/Gateway/GatewayAdminTests", swiftSettings: strict),
    // The whole gateway.
    .testTarget(
        name: "CountersignGatewayTests",
        dependencies: [
            "CHTTPServer", "CountersignCore", "CountersignGateway", "CountersignGatewayTesting",
            "CountersignJOSE", "CountersignJSON", "CountersignSQLite", "CountersignTesting", "GatewayAdmin",
            "GatewayHTTP", "GatewayIngest", "GatewayModel", "GatewayObservability", "GatewayStorage",
            "GatewayTestSupport", "TestSupport",
        ], path: "Tests/Gateway/CountersignGatewayTests", swiftSettings: strict),

    .testTarget(
        name: "CountersignCLITests",
        dependencies: [
            "Countersign", "CountersignCLI", "CountersignConsumer", "CountersignCore", "CountersignCrypto",
            "CountersignGateway", "CountersignGatewayTesting", "CountersignJOSE", "CountersignJSON",
            "CountersignSQLite", "CountersignTesting", "CountersignTransport", "GatewayHTTP", "GatewayIngest",
            "GatewayModel", "GatewayStorage", "TestSupport",
        ], path: "Tests/CLI/CountersignCLITests", swiftSettings: strict),
]

let package = Package(
    name: "countersign",
    platforms: [.macOS(.v13), .iOS(.v15)],
    products: [
        // CountersignTransport is for apps and tests that replace the HTTP transport or the clock.
        .library(name: "Countersign", targets: ["Countersign", "CountersignTransport"]),
        .library(name: "CountersignBloomreach", targets: ["CountersignBloomreach", "CountersignTransport"]),
        .library(name: "CountersignLocations", targets: ["CountersignLocations", "CountersignTransport"]),
        .library(name: "BrazeCompat", targets: ["BrazeCompat"]),
        .library(name: "ExponeaCompat", targets: ["ExponeaCompat"]),
        .library(name: "BackgroundGeolocationCompat", targets: ["BackgroundGeolocationCompat"]),
        .library(name: "CountersignTesting", targets: ["CountersignTesting"]),
        .library(name: "CountersignC", type: .dynamic, targets: ["CountersignC"]),
        .library(name: "CountersignConsumer", targets: ["CountersignConsumer"]),
        .library(name: "CountersignJOSE", targets: ["CountersignJOSE"]),
        .library(name: "CountersignGateway", targets: ["CountersignGateway"]),
        .library(name: "CountersignGatewayTesting", targets: ["CountersignGatewayTesting"]),
        // Installed as `countersign`. In a build folder that name would differ from the SDK's in case only.
        .executable(name: "countersign-cli", targets: ["CountersignCLI"]),
    ],
    targets: systemLibraries + sdk + gateway + tests,
    cxxLanguageStandard: .cxx17
)

if hasNATS {
    package.targets += [
        .systemLibrary(
            name: "CNATS", path: "Sources/CShims/CNATS", pkgConfig: "libnats",
            providers: [.apt(["libnats-dev"]), .brew(["cnats"])]),
        // Streams over NATS.
        .target(
            name: "GatewayNATS",
            dependencies: ["CountersignCore", "GatewayDelivery", "GatewayModel", "CNATS"],
            path: "Sources/Gateway/GatewayNATS",
            swiftSettings: strict),
    ]
}

if hasPostgreSQL {
    package.targets += [
        .systemLibrary(
            name: "CPostgreSQL", path: "Sources/CShims/CPostgreSQL", pkgConfig: "libpq",
            providers: [.apt(["libpq-dev"]), .brew(["libpq"])]),
        // Storage on PostgreSQL, and all SQL specific to it.
        .target(
            name: "GatewayPostgreSQL",
            dependencies: [
                "GatewayStorage", "GatewayModel", "CountersignCore", "CountersignSQLite",
                "CountersignJSON", "CPostgreSQL",
            ],
            path: "Sources/Gateway/GatewayPostgreSQL",
            swiftSettings: strict),
        .testTarget(
            name: "GatewayPostgreSQLTests",
            dependencies: [
                "CountersignCore", "CountersignCrypto", "CountersignGateway", "CountersignGatewayTesting",
                "CountersignJOSE", "CountersignSQLite", "GatewayModel", "GatewayObservability",
                "GatewayPostgreSQL", "GatewayStorage", "GatewayTestSupport",
            ], path: "Tests/Gateway/GatewayPostgreSQLTests", swiftSettings: strict),
    ]
}
