internal import Foundation

extension Positional {
    static let token = Positional(
        "FILE", .optional, completes: .files, help: "file with a token; - or no FILE reads standard input")
}

extension Invocation {
    /// The token in a file or on standard input, without the newline at its end.
    func tokenText() throws -> String {
        let path = word(of: .token) ?? "-"
        guard path == "-" || FileManager.default.fileExists(atPath: path) else {
            guard path.split(separator: ".").count < 3 else {
                throw CommandError(
                    .usage, "there is no file with this name, and tokens are not accepted as arguments",
                    hint: "other users of this machine can see arguments; give a file, or standard input")
            }
            throw CommandError(.notFound, "there is no file \(path)")
        }
        let text = try text(ofFile: path)
        return String(
            decoding: Array(text.utf8.reversed().drop { $0 == 0x0A || $0 == 0x0D }.reversed()), as: UTF8.self)
    }
}
