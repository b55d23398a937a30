/// A table with rows of apps. Found by its column `app_id`, so that deleting an app includes new tables.
package struct AppTable {
    package static let column = "app_id"

    package let name: String
    /// The key columns; at least one.
    package let key: [String]

    package init(name: String, key: [String]) {
        self.name = name
        self.key = key
    }
}
