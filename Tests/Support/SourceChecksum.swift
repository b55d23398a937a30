import CountersignCore
import Foundation

/// A checksum (FNV-1a) of a source file, without whitespace and trailing commas, which the formatter decides.
///
/// A sample of a vendor's documentation must stay as printed. Compare it with the vendor's page before you replace its
/// checksum. `path` is relative to the test.
package func sourceChecksum(_ path: String, of test: String = #filePath) throws -> String {
    let file = URL(fileURLWithPath: test).deletingLastPathComponent().appendingPathComponent(path)
    let code = try String(contentsOf: file, encoding: .utf8).filter { !$0.isWhitespace }
        .replacingOccurrences(of: ",]", with: "]")
    let hash = code.utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    return String(hash, radix: 16)
}
