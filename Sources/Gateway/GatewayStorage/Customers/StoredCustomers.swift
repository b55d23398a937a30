internal import CountersignCore
internal import CountersignSQLite
package import GatewayModel

/// Reads customers from a database of any engine. HTTP server threads may read, because writers block no reader.
package final class StoredCustomers: CustomerStore {
    private let database: any SQLReader
    private let end: @Sendable () -> Void

    /// Keeps all connections open for reuse, because each request of the Bloomreach dialect may read.
    package convenience init(path: String) {
        let readers = SQLiteReaders(path: path, mostIdle: .max)
        self.init(readers) { readers.close() }
    }

    /// `end` closes the database.
    package init(_ database: any SQLReader, end: @escaping @Sendable () -> Void = {}) {
        self.database = database
        self.end = end
    }

    package func close() { end() }

    package func owner(of identifier: CustomerIdentifier, appID: String) throws -> StoredCustomer? {
        try database.read { connection in
            try connection.first(
                """
                SELECT own.customer_id, EXISTS (
                    SELECT 1 FROM customer_identifier AS hard
                    WHERE hard.customer_id = own.customer_id AND hard.name = ?4)
                FROM customer_identifier AS own
                WHERE own.app_id = ?1 AND own.name = ?2 AND own.value = ?3
                """, .text(appID), .text(identifier.name), .text(identifier.value),
                .text(CustomerIdentifier.hardName)
            ) { StoredCustomer(id: $0.text(0), isIdentified: $0.int(1) != 0) }
        }
    }

    package func property(_ name: String, of customer: StoredCustomer) throws -> String? {
        try database.read { connection in
            try connection.first(
                """
                SELECT value FROM customer_property WHERE customer_id = ?1 AND name = ?2 AND value <> 'null'
                """, .text(customer.id), .text(name)
            ) { $0.text(0) }
        }
    }

    package func identifier(_ name: String, of customer: StoredCustomer) throws -> String? {
        try database.read { connection in
            try connection.first(
                """
                SELECT value FROM customer_identifier WHERE customer_id = ?1 AND name = ?2
                ORDER BY seq DESC LIMIT 1
                """, .text(customer.id), .text(name)
            ) { $0.text(0) }
        }
    }

    package func identifiers(of customer: StoredCustomer) throws -> [CustomerIdentifier] {
        try database.read { connection in
            try connection.all(
                """
                SELECT name, value FROM (
                    SELECT seq, name, value FROM customer_identifier WHERE customer_id = ?1
                    ORDER BY seq DESC LIMIT ?2) AS newest
                ORDER BY seq
                """, .text(customer.id), .integer(CustomerWriter.maximumAllSoftIDs + 1)
            ) { CustomerIdentifier(name: $0.text(0), value: $0.text(1)) }
        }
    }

    package func inboxReads(of customer: StoredCustomer) throws -> [InboxRead] {
        try database.read { connection in
            try connection.all(
                "SELECT seq, message_id FROM inbox_read WHERE customer_id = ?1 ORDER BY seq",
                .text(customer.id)
            ) { InboxRead(sequence: $0.int64(0), messageID: $0.text(1)) }
        }
    }

    package func isMerged(_ id: String, into customer: StoredCustomer) throws -> Bool {
        try database.read { connection in
            try connection.first(
                "SELECT 1 FROM customer_merge WHERE source_id = ?1 AND destination_id = ?2", .text(id),
                .text(customer.id)
            ) { _ in true } ?? false
        }
    }
}
