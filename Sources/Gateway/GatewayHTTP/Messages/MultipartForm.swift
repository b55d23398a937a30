internal import CHTTPServer
internal import CMicroHTTPD
package import CountersignCore

/// The fields of a `multipart/form-data` body (RFC 7578), parsed by libmicrohttpd.
package struct MultipartForm {
    package static let maximumFields = 64
    private static let longestName = 128

    /// The fields by name. Names are unique.
    package private(set) var fields: BytewiseDictionary<[UInt8]> = [:]

    private final class Collector {
        var fields: BytewiseDictionary<[UInt8]> = [:]

        /// Returns false to stop the parser if the part is not allowed.
        func take(_ name: String?, isFile: Bool, _ piece: UnsafeRawBufferPointer, at offset: UInt64) -> Bool {
            guard let name, !isFile, name.utf8.count <= MultipartForm.longestName,
                offset > 0 || fields[name] == nil && fields.count < MultipartForm.maximumFields
            else { return false }
            fields[name, default: []].append(contentsOf: piece)
            return true
        }
    }

    /// Parses a complete body.
    ///
    /// Returns nil for files, repeated names, too many fields, a missing boundary or a truncated body.
    init?(_ body: [UInt8], connection: OpaquePointer) {
        let collector = Collector()
        let isWhole = withExtendedLifetime(collector) {
            let processor = MHD_create_post_processor(
                connection, 1_024,
                { collector, _, name, file, _, _, data, offset, size in
                    guard let collector else { return .NO }
                    let isTaken = Unmanaged<Collector>.fromOpaque(collector).takeUnretainedValue().take(
                        name.map { String(cString: $0) }, isFile: file != nil,
                        UnsafeRawBufferPointer(start: data, count: size), at: offset)
                    return isTaken ? .YES : .NO
                }, Unmanaged.passUnretained(collector).toOpaque())
            guard let processor else { return false }
            let isRead = body.withUnsafeBytes { bytes in
                bytes.baseAddress.map {
                    MHD_post_process(processor, $0.assumingMemoryBound(to: CChar.self), bytes.count)
                } == .YES
            }
            // The end of the last field is checked only here.
            return MHD_destroy_post_processor(processor) == .YES && isRead
        }
        guard isWhole else { return nil }
        fields = collector.fields
    }
}
