/// A user id as a key; nil without a user.
///
/// Equal means equal bytes. `String ==` would take two ids that differ only in their Unicode form for one, and send the
/// events of one user under the token of the other.
package struct UserKey: Hashable, Sendable {
    package let userID: String?

    package init(_ userID: String?) {
        self.userID = userID
    }

    /// As it stands in the queue file.
    var column: String { userID ?? "" }

    init(column: String) {
        userID = column.isEmpty ? nil : column
    }

    package static let anonymous = UserKey(nil)

    package static func == (left: UserKey, right: UserKey) -> Bool {
        left.column.utf8.elementsEqual(right.column.utf8)
    }

    package func hash(into hasher: inout Hasher) {
        for byte in column.utf8 { hasher.combine(byte) }
    }
}
