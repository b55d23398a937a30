internal import CountersignCore
internal import CountersignSQLite

/// Finds, makes and merges customers. Runs inside the writer's transaction.
///
/// The rules are those of the vendor's documents on merging: no two customers share an id; customers with different
/// hard ids are never merged; a soft id that a hard id claims moves to it; of two values of a property the newer wins;
/// the customer that was made first goes on living.
struct CustomerWriter {
    /// The most soft ids of one name that a customer keeps; a further one takes the place of the oldest.
    static let maximumSoftIDs: Int64 = 64

    let connection: SQLiteConnection
    let appID: String

    private struct Found {
        let id: String
        let createdMilliseconds: Int64
        /// Its hard id, or nil while it is anonymous.
        let hard: String?
    }

    /// Stores the change.
    func apply(_ change: CustomerChange, receivedMilliseconds: Int64) throws {
        let customer = try resolve(change.identifiers, receivedMilliseconds: receivedMilliseconds)
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

    /// The customer that all these ids belong to from now on.
    private func resolve(_ identifiers: [CustomerIdentifier], receivedMilliseconds: Int64) throws -> String {
        let hard = identifiers.first { $0.name == CustomerIdentifier.hardName }
        var found: [Found] = []
        for identifier in identifiers {
            guard let customer = try find(identifier), !found.contains(where: { $0.id == customer.id })
            else { continue }
            found.append(customer)
        }
        // Whose request this is: the hard id decides, else the first id that is known.
        let owner = hard?.value ?? found.first?.hard ?? found.compactMap(\.hard).first
        let mergeable = found.filter { customer in
            guard let theirs = customer.hard else { return true }
            return owner.map { theirs.utf8.elementsEqual($0.utf8) } ?? false
        }
        let target: String
        if let survivor = mergeable.min(by: {
            ($0.createdMilliseconds, $0.id) < ($1.createdMilliseconds, $1.id)
        }) {
            target = survivor.id
            for other in mergeable where other.id != target {
                try merge(other.id, into: target, atMilliseconds: receivedMilliseconds)
            }
        } else {
            target = UUIDv7.make()
            try connection.run(
                "INSERT INTO customer VALUES (?1, ?2, ?3)", .text(target), .text(appID),
                .integer(receivedMilliseconds))
        }
        for identifier in identifiers {
            try assign(identifier, to: target, steals: hard != nil)
        }
        return target
    }

    private func find(_ identifier: CustomerIdentifier) throws -> Found? {
        try connection.first(
            """
            SELECT customer.id, customer.created_ms, hard.value
            FROM customer_identifier AS own
            JOIN customer ON customer.id = own.customer_id
            LEFT JOIN customer_identifier AS hard ON hard.customer_id = customer.id AND hard.name = ?4
            WHERE own.app_id = ?1 AND own.name = ?2 AND own.value = ?3
            """, .text(appID), .text(identifier.name), .text(identifier.value),
            .text(CustomerIdentifier.hardName)
        ) { Found(id: $0.text(0), createdMilliseconds: $0.int64(1), hard: $0.optionalText(2)) }
    }

    /// Gives an id to a customer; a known one moves only when a hard id claims it.
    private func assign(_ identifier: CustomerIdentifier, to customer: String, steals: Bool) throws {
        try connection.run(
            """
            INSERT INTO customer_identifier (app_id, name, value, customer_id) VALUES (?1, ?2, ?3, ?4)
            ON CONFLICT (app_id, name, value) DO UPDATE SET customer_id = ?4
            WHERE ?5 AND customer_id <> ?4
            """, .text(appID), .text(identifier.name), .text(identifier.value), .text(customer),
            .integer(steals ? 1 : 0))
        guard connection.changes > 0, identifier.name != CustomerIdentifier.hardName else { return }
        try trim(identifier.name, of: customer)
    }

    private func trim(_ name: String, of customer: String) throws {
        try connection.run(
            """
            DELETE FROM customer_identifier WHERE seq IN (
                SELECT seq FROM customer_identifier WHERE customer_id = ?1 AND name = ?2
                ORDER BY seq DESC LIMIT -1 OFFSET ?3)
            """, .text(customer), .text(name), .integer(Self.maximumSoftIDs))
    }

    private func set(
        _ name: String, _ json: [UInt8], of customer: String, atMilliseconds: Int64
    ) throws {
        try connection.run(
            """
            INSERT INTO customer_property VALUES (?1, ?2, ?3, ?4)
            ON CONFLICT (customer_id, name) DO UPDATE SET value = excluded.value, updated_ms = excluded.updated_ms
            WHERE excluded.updated_ms >= updated_ms
            """, .text(customer), .text(name), .text(String(decoding: json, as: UTF8.self)),
            .integer(atMilliseconds))
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
            INSERT INTO customer_property
            SELECT ?2, name, value, updated_ms FROM customer_property WHERE customer_id = ?1
            ON CONFLICT (customer_id, name) DO UPDATE SET value = excluded.value, updated_ms = excluded.updated_ms
            WHERE excluded.updated_ms > updated_ms
            """, .text(source), .text(destination))
        try connection.run("DELETE FROM customer_property WHERE customer_id = ?1", .text(source))
        // New places in the sequence, so that the destination's other devices learn of them.
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
            "INSERT INTO customer_merge VALUES (?1, ?2, ?3)", .text(source), .text(destination),
            .integer(atMilliseconds))
        try connection.run("DELETE FROM customer WHERE id = ?1", .text(source))
    }
}
