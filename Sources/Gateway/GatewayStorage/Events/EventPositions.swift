internal import CountersignCore
internal import CountersignCrypto

/// Converts sequence numbers to positions, which readers of events store, and back.
///
/// Detects truncated positions, and positions of another app or of a log before a restore.
package struct EventPositions: Sendable {
    package enum Fault: String, Error, Sendable, TextEnum {
        case malformed = "position_malformed"
        case otherApp = "position_of_another_app"
        case otherLog = "position_of_another_log"
        case ahead = "position_ahead"

        package var reason: String {
            switch self {
            case .malformed: "this is not a position; send one exactly as you received it"
            case .otherApp: "this position belongs to another app; use one of this app"
            case .otherLog:
                "this position is from another event log, such as the one before a backup was restored; continue from "
                    + "a consumer's committed position, or from a time"
            case .ahead:
                "this position is after the newest event, so the log was restored to an earlier state; continue "
                    + "from a consumer's committed position, or from a time"
            }
        }
    }

    private static let version: UInt8 = 1
    private static let bytes = 25

    /// The highest sequence number that a stored event can have; 0 before the first event.
    package let head: Int64
    private let logID: ArraySlice<UInt8>

    package init(logID: [UInt8], head: Int64) {
        self.logID = logID.prefix(8)
        self.head = head
    }

    /// The position after an event of an app: 34 characters of base64url. `sequence` is 0 before the first event.
    package func text(after sequence: Int64, in appID: String) -> String {
        of(appID).text(after: sequence)
    }

    /// Positions of one app, for formatting many of them.
    package func of(_ appID: String) -> AppPositions {
        AppPositions(start: [Self.version] + logID + Self.tag(of: appID))
    }

    package func sequence(of text: String, in appID: String) throws(Fault) -> Int64 {
        guard text.utf8.count <= 64, let bytes = Base64URL.decode(text), bytes.count == Self.bytes,
            bytes[0] == Self.version
        else { throw .malformed }
        let check = bytes[..<21].withUnsafeBytes { checksum($0) }
        guard check == bytes[21...].reduce(UInt32(0), { $0 << 8 | UInt32($1) }) else { throw .malformed }
        guard bytes[1..<9].elementsEqual(logID) else { throw .otherLog }
        guard bytes[9..<13].elementsEqual(Self.tag(of: appID)) else { throw .otherApp }
        let sequence = Int64(bitPattern: bytes[13..<21].reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
        guard sequence >= 0 else { throw .malformed }
        guard sequence <= head else { throw .ahead }
        return sequence
    }

    private static func tag(of appID: String) -> [UInt8] {
        Array(SHA256.digest(appID).prefix(4))
    }
}

package struct AppPositions: Sendable {
    let start: [UInt8]

    package func text(after sequence: Int64) -> String {
        withUnsafeTemporaryAllocation(byteCount: start.count + 12, alignment: 1) { bytes in
            bytes.copyBytes(from: start)
            bytes.storeBytes(of: sequence.bigEndian, toByteOffset: start.count, as: Int64.self)
            let check = checksum(UnsafeRawBufferPointer(rebasing: bytes[..<(start.count + 8)]))
            bytes.storeBytes(of: check.bigEndian, toByteOffset: start.count + 8, as: UInt32.self)
            return Base64URL.encode(UnsafeRawBufferPointer(bytes))
        }
    }
}
