import CountersignGatewayTesting
package import Testing

extension Trait where Self == ConditionTrait {
    /// Leaves a test out where the suite runs on PostgreSQL: it is about SQLite's files, or about a class that nothing else uses.
    package static func onSQLite(_ why: String) -> Self {
        .enabled(if: TestEngine.standard == .sqlite, "about SQLite: \(why)")
    }
}
