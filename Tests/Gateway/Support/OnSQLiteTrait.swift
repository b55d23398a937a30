import CountersignGatewayTesting
package import Testing

extension Trait where Self == ConditionTrait {
    /// Skips a test on PostgreSQL, for tests of SQLite's files or of classes that only SQLite uses.
    package static func onSQLite(_ why: String) -> Self {
        .enabled(if: TestEngine.standard == .sqlite, "only on SQLite: \(why)")
    }
}
