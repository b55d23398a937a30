// swift-tools-version: 6.3
import PackageDescription

/// The Swift examples share this manifest, so that their dependencies are built once.
let package = Package(
    name: "Examples", platforms: [.macOS(.v13), .iOS(.v15)],
    dependencies: [.package(name: "countersign", path: "..")],
    targets: [
        .executableTarget(
            name: "LoadDaemon", dependencies: [.product(name: "Countersign", package: "countersign")],
            path: "LoadDaemon/Sources"),
        .executableTarget(
            name: "NotesApp", dependencies: [.product(name: "Countersign", package: "countersign")],
            path: "NotesApp/Sources"),
        .executableTarget(
            name: "TokenBackend", dependencies: [.product(name: "CountersignJOSE", package: "countersign")],
            path: "TokenBackend/Sources"),
    ])
