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
        // Time to verify a token, and OpenSSL's share of it.
        .executableTarget(
            name: "Verifying",
            dependencies: ["CEVP", .product(name: "CountersignJOSE", package: "countersign")],
            swiftSettings: [
                .treatAllWarnings(as: .error), .enableUpcomingFeature("InternalImportsByDefault"),
            ]),
        // Requests a second that the gateway answers, and processor time for each.
        .executableTarget(
            name: "Gateway", dependencies: [.product(name: "CountersignJOSE", package: "countersign")],
            swiftSettings: [.treatAllWarnings(as: .error)]),
        // Time to record an event, rate of delivery, and bytes of a row in the queue.
        .executableTarget(
            name: "Queue", dependencies: [.product(name: "Countersign", package: "countersign")],
            swiftSettings: [.treatAllWarnings(as: .error)]),
    ]
)
