internal import CountersignCore
internal import Foundation
package import GatewayModel

/// The mark of what a copy has begun to fill and not finished: nothing else may work with it.
package enum UnfinishedCopy {
    /// Where the target keeps which event was copied last. It goes with the end of the copy.
    package static let table = "unfinished_copy"

    private static let file = "unfinished-copy"
    /// In a data directory while a backup is restored into it.
    static let restoreFile = "unfinished-restore"

    package static let refusal = GatewayError(
        .conflict, "a copy to this place has not been finished; copy from the same source again to finish it")

    static func path(in folder: String) -> String { folder + "/" + file }

    /// Throws ``refusal`` for a data directory that is half copied, and `conflict` for one that is half restored.
    package static func check(_ folder: String) throws(GatewayError) {
        if FileManager.default.fileExists(atPath: path(in: folder)) { throw refusal }
        guard !FileManager.default.fileExists(atPath: folder + "/" + restoreFile) else {
            throw GatewayError(
                .conflict,
                "a backup was not restored into \(folder) completely; restore it again to finish it")
        }
    }
}
