internal import CountersignCore
internal import Foundation
package import GatewayModel

/// The mark of what a copy has begun to fill and not finished: nothing else may work with it.
package enum UnfinishedCopy {
    /// Where the target keeps which event was copied last. It goes with the end of the copy.
    package static let table = "unfinished_copy"

    private static let file = "unfinished-copy"

    package static let refusal = GatewayError(
        .conflict, "a copy into this place is not finished; copy from the same source again to finish it")

    static func path(in folder: String) -> String { folder + "/" + file }

    /// Throws ``refusal`` for a data directory that is half copied.
    package static func check(_ folder: String) throws(GatewayError) {
        if FileManager.default.fileExists(atPath: path(in: folder)) { throw refusal }
    }
}
