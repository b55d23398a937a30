// swift-tools-version: 6.3
import PackageDescription

// A separate package, because the fuzzer has its own `main`. `make fuzz` builds and runs it.
let package = Package(
    name: "fuzzing",
    platforms: [.macOS(.v13)],
    dependencies: [.package(name: "countersign", path: "..")],
    targets: [
        .executableTarget(
            name: "Fuzz",
            dependencies: [
                .product(name: "CountersignJOSE", package: "countersign"),
                .product(name: "CountersignGateway", package: "countersign"),
            ],
            swiftSettings: [.swiftLanguageMode(.v6), .enableUpcomingFeature("InternalImportsByDefault")])
    ]
)
