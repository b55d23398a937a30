internal import CountersignCore
internal import CountersignSQLite
package import GatewayModel
internal import GatewayStorage

/// The schema `countersign` in the operator's database, and how it comes to be this version's.
package enum PostgreSQLSchema {
    /// One of the gateway's locks at a time per database: `pg_advisory_lock(class, …)`.
    static let lockClass = 0x4353

    /// Each runs once, in a transaction of its own, and is then never changed. A program must be able to work with the
    /// schema of the version after it: a step adds first, and takes away when no older program can be running.
    static let migrations = [
        texts(
            ControlTables.script + CountTables.script + EventTables.script + EventConsumerTables.script
                + CustomerTables.script + GenerationTable.script + ClusterTables.script),
        texts(ClusterTables.talk),
        ClusterTables.seals,
        ClusterTables.sessionHistory,
        texts(CountTables.deliveryContent),
        texts(ControlTables.writeKeyText),
        CustomerTables.propertyLimit,
        texts(ControlTables.publishedKeySets),
        ControlTables.begunSecondFactor,
        ControlTables.expiries,
    ]

    /// What this program works with.
    package static var newest: Int { migrations.count }

    /// What the database has; 0 for an empty one. Throws `storage`, also for one that a newer version has written.
    package static func version(_ settings: PostgreSQLSettings) throws(GatewayError) -> Int {
        try GatewayError.storing { try version(PostgreSQLConnection(settings)) }
    }

    /// Texts compare by their bytes, as in SQLite, whatever the database's locale is.
    static func texts(_ script: String) -> String {
        script.replacing(" TEXT", with: " TEXT COLLATE \"C\"")
    }

    /// Brings the database to this version's schema. Any number of programs may do so at once: one does, the others wait
    /// for it. Returns a connection with these settings. Throws `conflict` when a newer version has written it, or
    /// `PostgreSQLError`.
    @discardableResult
    package static func migrate(_ settings: PostgreSQLSettings) throws -> PostgreSQLConnection {
        // A look without the lock: mostly there is nothing to do, and a lock needs the server's attention.
        do {
            let connection = try PostgreSQLConnection(settings)
            if try version(connection) == migrations.count { return connection }
        }
        let connection = try PostgreSQLConnection(settings.patient)
        try connection.execute("SELECT pg_advisory_lock(\(lockClass), 1)")
        let version = try version(connection)
        for number in version..<max(version, migrations.count) {
            try connection.transaction {
                try connection.execute(number == 0 ? first + migrations[0] : migrations[number])
                try connection.run(
                    "INSERT INTO schema_version VALUES (?1, now(), ?2)", .integer(Int64(number + 1)),
                    .text(countersignVersion))
            }
        }
        try EventPartitions.make(connection)
        try connection.execute("SELECT pg_advisory_unlock(\(lockClass), 1)")
        return try PostgreSQLConnection(settings)
    }

    private static let first = """
        CREATE SCHEMA IF NOT EXISTS countersign;
        CREATE TABLE schema_version (
            version BIGINT PRIMARY KEY, applied_at TIMESTAMPTZ NOT NULL, program TEXT NOT NULL);

        """

    /// The schema version; 0 in an empty database. Throws `conflict` for a database whose encoding is not UTF-8.
    private static func version(_ connection: PostgreSQLConnection) throws -> Int {
        let encoding = connection.serverEncoding
        guard encoding == "UTF8" else {
            throw GatewayError(
                .conflict,
                "the database's encoding is \(encoding), which cannot hold every text; make one in UTF-8: "
                    + "CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0")
        }
        let isThere = try connection.first("SELECT to_regclass('countersign.schema_version') IS NOT NULL") {
            $0.int(0) != 0
        }
        guard isThere == true else { return 0 }
        let version = try connection.first("SELECT max(version) FROM schema_version") { $0.int(0) } ?? 0
        guard version <= migrations.count else {
            throw GatewayError(
                .conflict,
                "the database was written by a newer version (schema \(version), this one knows "
                    + "\(migrations.count)); use that version")
        }
        return version
    }
}
