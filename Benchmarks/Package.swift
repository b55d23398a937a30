// swift-tools-version: 6.3
import PackageDescription

let package = Package(
    name: "benchmarks",
    platforms: [.macOS(.v13)],
    dependencies: [.package(name: "countersign", path: "..")],
    targets: [
        .systemLibrary(
            name: "CEVP", pkgConfig: "openssl",
            providers: [.apt(["libssl-dev"]), .brew(["openssl@3"])]),
        // What does a verification cost, and how much of it is OpenSSL's own work?
        .executableTarget(
            name: "Verifying",
            dependencies: ["CEVP", .product(name: "CountersignJOSE", package: "countersign")],
            swiftSettings: [
                .treatAllWarnings(as: .error), .enableUpcomingFeature("InternalImportsByDefault"),
            ]),
        // How many requests a second does the gateway answer, and what does one cost?
        .executableTarget(
            name: "Gateway", dependencies: [.product(name: "CountersignJOSE", package: "countersign")],
            swiftSettings: [.treatAllWarnings(as: .error)]),
        // What does recording cost, how fast does the queue drain, and what does a row take?
        .executableTarget(
            name: "Queue", dependencies: [.product(name: "Countersign", package: "countersign")],
            swiftSettings: [.treatAllWarnings(as: .error)]),
    ]
)
