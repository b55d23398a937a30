internal import Foundation

package enum DiskSpace {
    /// 0 when the file does not exist.
    static func size(of path: String) -> Int {
        var status = stat()
        return stat(path, &status) == 0 ? Int(status.st_size) : 0
    }

    /// The bytes available to an unprivileged process at this path; nil when unknown.
    package static func free(at path: String) -> Int? {
        var status = statvfs()
        guard statvfs(path, &status) == 0 else { return nil }
        let (bytes, overflows) = UInt64(status.f_bavail).multipliedReportingOverflow(
            by: UInt64(status.f_frsize))
        return overflows ? Int.max : Int(clamping: bytes)
    }
}
