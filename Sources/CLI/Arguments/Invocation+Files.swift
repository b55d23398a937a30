extension Invocation {
    func text(ofFile path: String) throws -> String {
        String(decoding: try bytes(ofFile: path), as: UTF8.self)
    }

    /// The bytes of a file, or of standard input for `-`.
    func bytes(ofFile path: String) throws -> [UInt8] {
        path == "-" ? try io.input() : try InputFile(path: path).bytes()
    }
}
