import Foundation

enum Package {
    /// The root folder of the checkout. This file is five levels below it.
    static let folder = (0..<5).reduce(URL(fileURLWithPath: #filePath)) { url, _ in
        url.deletingLastPathComponent()
    }
}
