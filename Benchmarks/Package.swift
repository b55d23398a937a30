// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "benchmarks",
    platforms: [.macOS(.v13)],
    dependencies: [.package(name: "countersign", path: "..")],
    targets: [
        // How many requests a second does the gateway answer, and what does one cost?
        .executableTarget(name: "Gateway", swiftSettings: [.treatAllWarnings(as: .error)])
    ]
)
