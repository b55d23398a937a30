/// A user id as a key; nil without a user. Compares by bytes: for `String ==`, two ids in different Unicode forms can
/// be equal, so events of one user would be sent under another user's token.
package struct UserKey: Hashable, Sendable {
    package let userID: String?

    package init(_ userID: String?) {
        self.userID = userID
    }

    /// The value of the column in the queue file.
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
