internal import CountersignTransport
internal import Foundation

#if os(Linux)
    typealias SystemTransport = CurlTransport
#else
    typealias SystemTransport = URLSessionTransport
#endif

extension SystemTransport {
    /// Trusts the certificates in a PEM file, or those of the system without one. Throws `notFound` for an unreadable
    /// file, and `usage` for a file on a system other than Linux.
    static func trusting(_ file: String?) throws(CommandError) -> SystemTransport {
        if let file, !FileManager.default.isReadableFile(atPath: file) {
            throw CommandError(.notFound, "cannot read \(file)", hint: "--ca-file takes a PEM file")
        }
        #if os(Linux)
            return CurlTransport(certificateAuthorityFile: file)
        #else
            guard file == nil else {
                throw CommandError(.usage, "--ca-file is for Linux", hint: "add the CA to the keychain")
            }
            return URLSessionTransport()
        #endif
    }
}
