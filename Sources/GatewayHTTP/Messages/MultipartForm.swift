internal import CHTTPServer
internal import CMicroHTTPD
package import CountersignCore

/// The fields of a `multipart/form-data` body (RFC 7578), as libmicrohttpd reads them.
package struct MultipartForm {
    /// The most fields of a body.
    package static let maximumFields = 64
    private static let longestName = 128

    /// The fields by name. Each stands once.
    package private(set) var fields: BytewiseDictionary<[UInt8]> = [:]

    private final class Collector {
        var fields: BytewiseDictionary<[UInt8]> = [:]

        /// False for what no form may have, which ends the reading.
        func take(_ name: String?, isFile: Bool, _ piece: UnsafeRawBufferPointer, at offset: UInt64) -> Bool {
            guard let name, !isFile, name.utf8.count <= MultipartForm.longestName,
                offset > 0 || fields[name] == nil && fields.count < MultipartForm.maximumFields
            else { return false }
            fields[name, default: []].append(contentsOf: piece)
            return true
        }
    }

    /// Reads a whole body.
    ///
    /// Nil comes back for anything but fields that each stand once, in a body that ends as it must: for files, too many
    /// fields, a missing boundary.
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
            // The end of the last field is only seen here.
            return MHD_destroy_post_processor(processor) == .YES && isRead
        }
        guard isWhole else { return nil }
        fields = collector.fields
    }
}
