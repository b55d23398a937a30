/// A table whose rows belong to apps: one with a column `app_id`, whatever else it holds. So a table that is added later
/// is covered without a line here.
package struct AppTable {
    package static let column = "app_id"

    package let name: String
    /// The columns that a row is named by; one at least.
    package let key: [String]

    package init(name: String, key: [String]) {
        self.name = name
        self.key = key
    }
}
