internal import CountersignCore
internal import CountersignSQLite
internal import GatewayModel

/// Finds, creates and merges customers, within the writer's transaction.
///
/// Each id belongs to one customer. A customer with a hard id (`registered`) is selected only by that id, and never
/// loses its ids to another customer. Soft ids are unauthenticated claims of clients. They create customers, and merge
/// customers without a hard id. They are attached to the customer of a hard id in the same request. In a
/// merge, the newer value of a property wins and the older customer remains.
struct CustomerWriter {
    /// The maximum number of soft ids of one name. A further id replaces the oldest. The anonymous events of a
    /// replaced id are not deleted with the customer.
    static let maximumSoftIDs: Int64 = 64

    /// The maximum number of soft ids of all names together.
    static let maximumAllSoftIDs: Int64 = 256

    /// The maximum number of properties of a customer. Further properties are not added.
    static let maximumProperties: Int64 = 1_000

    /// Bytes of ids, properties and read messages. Above the maximum, properties are not added and cannot grow.
    static let maximumBytes: Int64 = 1 << 20

    let connection: SQLiteConnection
    let appID: String

    private struct Found {
        let id: String
        let createdMilliseconds: Int64
        let isIdentified: Bool
    }

    func apply(_ change: CustomerChange, receivedMilliseconds: Int64) throws {
        // A change is ignored if all its ids are soft and belong to customers that these ids may not select.
        guard let customer = try resolve(change, receivedMilliseconds: receivedMilliseconds)
        else { return }
        // `seen_ms` has a resolution of one hour, so that most requests need not write the row.
        try connection.run(
            "UPDATE customer SET seen_ms = ?2 WHERE id = ?1 AND seen_ms < ?2 - 3600000", .text(customer),
            .integer(receivedMilliseconds))
        for property in change.properties {
            try set(property.name, property.json, of: customer, atMilliseconds: change.atMilliseconds)
        }
        for message in change.readMessageIDs {
            try connection.run(
                """
                INSERT INTO inbox_read (customer_id, message_id, read_ms) VALUES (?1, ?2, ?3)
                ON CONFLICT (customer_id, message_id) DO NOTHING
                """, .text(customer), .text(message), .integer(receivedMilliseconds))
        }
    }

    /// The customer that these ids select or create; nil if the change must be ignored.
    private func resolve(_ change: CustomerChange, receivedMilliseconds: Int64) throws -> String? {
        var found: [Found] = []
        var free: [CustomerIdentifier] = []
        for identifier in change.identifiers {
            guard let owner = try find(identifier) else {
                free.append(identifier)
                continue
            }
            let selects =
                identifier.isHard
                || !owner.isIdentified && (identifier.isCookie || !change.joinsByCookieOnly)
            guard selects, !found.contains(where: { $0.id == owner.id })
            else { continue }
            found.append(owner)
        }
        let target: String
        if let survivor = found.min(by: {
            $0.createdMilliseconds == $1.createdMilliseconds
                ? $0.id < $1.id : $0.createdMilliseconds < $1.createdMilliseconds
        }) {
            target = survivor.id
            let identified = found.first(where: \.isIdentified) ?? survivor
            for other in found where other.id != target {
                // An unauthenticated profile must not displace properties of the authenticated customer.
                let isKept = other.id == identified.id
                try trimProperties(of: isKept ? target : other.id, besides: isKept ? other.id : target)
                try merge(other.id, into: target, atMilliseconds: receivedMilliseconds)
                try trimProperties(of: target)
            }
        } else if free.isEmpty {
            return nil
        } else {
            target = UUIDv7.make()
            try connection.run(
                "INSERT INTO customer (id, app_id, created_ms, seen_ms) VALUES (?1, ?2, ?3, ?3)",
                .text(target), .text(appID), .integer(receivedMilliseconds))
        }
        for identifier in free { try assign(identifier, to: target) }
        return target
    }

    private func find(_ identifier: CustomerIdentifier) throws -> Found? {
        try connection.first(
            """
            SELECT customer.id, customer.created_ms, EXISTS (
                SELECT 1 FROM customer_identifier AS hard
                WHERE hard.customer_id = customer.id AND hard.name = ?4)
            FROM customer_identifier AS own
            JOIN customer ON customer.id = own.customer_id
            WHERE own.app_id = ?1 AND own.name = ?2 AND own.value = ?3
            """, .text(appID), .text(identifier.name), .text(identifier.value),
            .text(CustomerIdentifier.hardName)
        ) { Found(id: $0.text(0), createdMilliseconds: $0.int64(1), isIdentified: $0.int(2) != 0) }
    }

    private func assign(_ identifier: CustomerIdentifier, to customer: String) throws {
        try connection.run(
            "INSERT INTO customer_identifier (app_id, name, value, customer_id) VALUES (?1, ?2, ?3, ?4)",
            .text(appID), .text(identifier.name), .text(identifier.value), .text(customer))
        if !identifier.isHard { try trim(identifier.name, of: customer) }
    }

    private func trim(_ name: String, of customer: String) throws {
        try connection.run(
            """
            DELETE FROM customer_identifier WHERE customer_id = ?1 AND name = ?2 AND seq <= (
                SELECT seq FROM customer_identifier WHERE customer_id = ?1 AND name = ?2
                ORDER BY seq DESC LIMIT 1 OFFSET ?3)
            """, .text(customer), .text(name), .integer(Self.maximumSoftIDs))
        try connection.run(
            """
            DELETE FROM customer_identifier WHERE customer_id = ?1 AND name <> ?2 AND seq <= (
                SELECT seq FROM customer_identifier WHERE customer_id = ?1 AND name <> ?2
                ORDER BY seq DESC LIMIT 1 OFFSET ?3)
            """, .text(customer), .text(CustomerIdentifier.hardName), .integer(Self.maximumAllSoftIDs))
    }

    private func set(
        _ name: String, _ json: [UInt8], of customer: String, atMilliseconds: Int64
    ) throws {
        try connection.run(
            """
            INSERT INTO customer_property (customer_id, name, value, updated_ms)
            SELECT ?1, ?2, ?3, ?4 FROM customer WHERE id = ?1
            AND (properties < ?7 OR EXISTS (
                SELECT 1 FROM customer_property WHERE customer_id = ?1 AND name = ?2))
            AND (bytes + ?5 + ?6 <= ?8 OR EXISTS (
                SELECT 1 FROM customer_property WHERE customer_id = ?1 AND name = ?2
                AND length(CAST(value AS BLOB)) >= ?6))
            ON CONFLICT (customer_id, name) DO UPDATE SET value = excluded.value, updated_ms = excluded.updated_ms
            WHERE excluded.updated_ms >= customer_property.updated_ms
            """, .text(customer), .text(name), .text(String(decoding: json, as: UTF8.self)),
            .integer(atMilliseconds), .integer(Int64(name.utf8.count)), .integer(Int64(json.count)),
            .integer(Self.maximumProperties), .integer(Self.maximumBytes))
    }

    /// Deletes the oldest properties of `customer` that exceed the limits. The data of `other` counts too.
    private func trimProperties(of customer: String, besides other: String? = nil) throws {
        let sums = try connection.first(
            "SELECT sum(bytes), sum(properties), sum(CASE WHEN id = ?2 THEN bytes ELSE 0 END), "
                + "sum(CASE WHEN id = ?2 THEN properties ELSE 0 END) FROM customer WHERE id IN (?1, ?2)",
            .text(customer), .text(other ?? "")
        ) { (bytes: $0.int64(0), properties: $0.int64(1), otherBytes: $0.int64(2), others: $0.int64(3)) }
        guard let sums,
            sums.bytes > Self.maximumBytes || sums.properties > Self.maximumProperties
        else { return }
        try connection.run(
            """
            DELETE FROM customer_property WHERE customer_id = ?1 AND name IN (
                SELECT name FROM (
                    SELECT name, row_number() OVER newest AS place,
                        sum(length(CAST(name AS BLOB)) + length(CAST(value AS BLOB))) OVER newest AS size
                    FROM customer_property AS own WHERE customer_id = ?1 AND NOT EXISTS (
                        SELECT 1 FROM customer_property AS kept WHERE kept.customer_id = ?2 AND kept.name = own.name)
                    WINDOW newest AS (ORDER BY updated_ms DESC, name))
                WHERE place > ?3 OR size > ?4)
            """, .text(customer), .text(other ?? ""), .integer(Self.maximumProperties - sums.others),
            .integer(Self.maximumBytes - sums.otherBytes))
    }

    private func merge(_ source: String, into destination: String, atMilliseconds: Int64) throws {
        let names = try connection.all(
            "SELECT DISTINCT name FROM customer_identifier WHERE customer_id = ?1", .text(source)
        ) { $0.text(0) }
        try connection.run(
            "UPDATE customer_identifier SET customer_id = ?2 WHERE customer_id = ?1", .text(source),
            .text(destination))
        for name in names { try trim(name, of: destination) }
        try connection.run(
            """
            INSERT INTO customer_property (customer_id, name, value, updated_ms)
            SELECT ?2, name, value, updated_ms FROM customer_property WHERE customer_id = ?1
            ON CONFLICT (customer_id, name) DO UPDATE SET value = excluded.value, updated_ms = excluded.updated_ms
            WHERE excluded.updated_ms > customer_property.updated_ms
            """, .text(source), .text(destination))
        try connection.run("DELETE FROM customer_property WHERE customer_id = ?1", .text(source))
        // Inserts new rows with new sequence numbers, so that other devices of the destination fetch them.
        try connection.run(
            """
            INSERT INTO inbox_read (customer_id, message_id, read_ms)
            SELECT ?2, message_id, read_ms FROM inbox_read WHERE customer_id = ?1
            ON CONFLICT (customer_id, message_id) DO NOTHING
            """, .text(source), .text(destination))
        try connection.run("DELETE FROM inbox_read WHERE customer_id = ?1", .text(source))
        try connection.run(
            "UPDATE customer_merge SET destination_id = ?2 WHERE destination_id = ?1", .text(source),
            .text(destination))
        try connection.run(
            "INSERT INTO customer_merge (source_id, destination_id, merged_ms) VALUES (?1, ?2, ?3)",
            .text(source), .text(destination), .integer(atMilliseconds))
        try connection.run("DELETE FROM customer WHERE id = ?1", .text(source))
    }

    /// Deletes at most `rows` rows from each table. Returns true when no row is left. May be repeated after an error.
    static func delete(_ customer: String, rows: Int, _ connection: SQLiteConnection) throws -> Bool {
        for (table, key) in [
            ("customer_property", "name"), ("inbox_read", "seq"), ("customer_identifier", "seq"),
        ] {
            try connection.run(
                """
                DELETE FROM \(table) WHERE customer_id = ?1 AND \(key) IN (
                    SELECT \(key) FROM \(table) WHERE customer_id = ?1 LIMIT ?2)
                """, .text(customer), .integer(Int64(rows)))
            if connection.changes == rows { return false }
        }
        try connection.run("DELETE FROM customer_merge WHERE destination_id = ?1", .text(customer))
        try connection.run("DELETE FROM customer WHERE id = ?1", .text(customer))
        return true
    }
}
