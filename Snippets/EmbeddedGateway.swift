// Run a gateway inside your own process.
import CountersignGateway
import Foundation

func serve(dataDirectory: String) throws {
    let apps = try AppDirectory(dataDirectory: dataDirectory)
    let (app, writeKey) = try apps.createApp(id: "shop")
    print("the write key of \(app.id): \(writeKey)")

    var configuration = GatewayConfiguration(dataDirectory: dataDirectory)
    configuration.port = 0  // any free one
    let gateway = try Gateway(configuration: configuration)
    try gateway.start()
    print("listens on port \(gateway.port)")
    gateway.stop()
}

let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
try serve(dataDirectory: folder.path)
try FileManager.default.removeItem(at: folder)
