internal import Foundation

/// How much space files take and how much is left.
enum DiskSpace {
    /// Bytes of a file; 0 when there is none.
    static func size(of path: String) -> Int {
        var status = stat()
        return stat(path, &status) == 0 ? Int(status.st_size) : 0
    }

    /// Bytes that a process without special rights may still write where this file or folder is; nil when unknown.
    static func free(at path: String) -> Int? {
        var status = statvfs()
        guard statvfs(path, &status) == 0 else { return nil }
        let (bytes, overflows) = UInt64(status.f_bavail).multipliedReportingOverflow(
            by: UInt64(status.f_frsize))
        return overflows ? Int.max : Int(clamping: bytes)
    }
}
