import Foundation
import Testing

/// A new folder, deleted with this object.
final class TemporaryFolder: Sendable {
    let path: String

    init() {
        path = FileManager.default.temporaryDirectory.appendingPathComponent("cli-\(UUID().uuidString)").path
        do {
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        } catch {
            Issue.record(error)
        }
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    /// Writes a file into the folder and returns its path.
    func write(_ text: String, to name: String) throws -> String {
        let file = path + "/" + name
        try Data(text.utf8).write(to: URL(fileURLWithPath: file))
        return file
    }

    /// Creates a self-signed certificate of 127.0.0.1 for 400 days, and its key.
    func makeCertificate(_ name: String) async throws -> (certificate: String, key: String) {
        let (certificate, key) = (path + "/\(name).pem", path + "/\(name)-key.pem")
        let made = try await Shell(folder: path).run(
            """
            openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 400 -subj '/CN=\(name)' \
              -addext subjectAltName=IP:127.0.0.1 -keyout '\(key)' -out '\(certificate)'
            """)
        try #require(made.status == 0, "\(made.talk)")
        return (certificate, key)
    }
}
