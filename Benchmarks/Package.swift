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
        // The time to verify a token, and OpenSSL's share of that time.
        .executableTarget(
            name: "Verifying",
            dependencies: ["CEVP", .product(name: "CountersignJOSE", package: "countersign")],
            swiftSettings: [
                .treatAllWarnings(as: .error), .enableUpcomingFeature("InternalImportsByDefault"),
            ]),
        // The gateway's requests a second, and the CPU time of each request.
        .executableTarget(
            name: "Gateway", dependencies: [.product(name: "CountersignJOSE", package: "countersign")],
            swiftSettings: [.treatAllWarnings(as: .error)]),
        // The time to record an event, the rate of delivery, and the bytes of a row in the queue.
        .executableTarget(
            name: "Queue", dependencies: [.product(name: "Countersign", package: "countersign")],
            swiftSettings: [.treatAllWarnings(as: .error)]),
    ]
)
