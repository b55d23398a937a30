#if canImport(Darwin)
    internal import Darwin
#elseif canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#endif

/// `EDQUOT`: a quota is full.
let quotaErrorNumber = EDQUOT

/// Flushes a file's content, or a folder's entries, to the disk. Returns 0 or the `errno` of the failure.
package func synchronizeFile(_ path: String) -> Int32 {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return errno }
    defer { close(file) }
    return fsync(file) == 0 ? 0 : errno
}

/// Rewrites a file in place and flushes it. Returns 0 or the `errno` of the failure. A failed flush marks the file's
/// pages as clean, so another flush alone would not write them.
func rewriteFile(_ path: String) -> Int32 {
    let file = open(path, O_RDWR | O_CLOEXEC)
    guard file >= 0 else { return errno }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: 1 << 20)
    var offset = 0
    while true {
        let count = pread(file, &bytes, bytes.count, off_t(offset))
        if count == 0 { return fsync(file) == 0 ? 0 : errno }
        guard count > 0, pwrite(file, bytes, count, off_t(offset)) == count else {
            return errno == 0 ? EIO : errno
        }
        offset += count
    }
}
