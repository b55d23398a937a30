internal import CountersignCore
internal import GatewayModel

/// Creates, changes and merges the customers of batches, within the transaction that stores their events.
///
/// Must be called once, after the events, so that all transactions lock shared rows in the same order. After an error,
/// the transaction must be rolled back.
enum CustomerWriter {
    static func store(_ batches: [EventBatch], _ connection: PostgreSQLConnection) throws {
        let changes = batches.flatMap { batch in batch.customers.map { (batch, $0) } }
        guard !changes.isEmpty else { return }
        let ids = changes.flatMap { batch, change in change.identifiers.map { (batch.appID, $0) } }
        var taken = Parameters()
        taken.add(texts: ids.map { $0.0 })
        taken.add(texts: ids.map(\.1.name))
        taken.add(texts: ids.map(\.1.value))
        try connection.each("SELECT lock_customers(?1, ?2, ?3)", taken) { _ in true }

        var parameters = Parameters()
        parameters.add(texts: changes.map { $0.0.appID })
        parameters.add(texts: changes.map { _ in UUIDv7.make() })
        parameters.add(integers: changes.map { $0.1.joinsByCookieOnly ? 1 : 0 })
        parameters.add(integers: changes.map { $0.1.atMilliseconds })
        parameters.add(integers: changes.map { $0.0.receivedMilliseconds })
        parameters.add(texts: changes.map { array($0.1.identifiers.map(\.name)) })
        parameters.add(texts: changes.map { array($0.1.identifiers.map(\.value)) })
        parameters.add(texts: changes.map { array($0.1.properties.map(\.name)) })
        parameters.add(
            texts: changes.map { array($0.1.properties.map { String(decoding: $0.json, as: UTF8.self) }) })
        parameters.add(texts: changes.map { array($0.1.readMessageIDs) })
        try connection.each(
            """
            SELECT change_customer(app, made, by_cookie <> 0, at_ms, received_ms, id_names::text[], id_values::text[],
                names::text[], jsons::text[], reads::text[])
            FROM unnest(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) WITH ORDINALITY
                AS change (app, made, by_cookie, at_ms, received_ms, id_names, id_values, names, jsons, reads, number)
            ORDER BY number
            """, parameters
        ) { _ in true }
    }

    /// An array literal. A nested array would require inner arrays of equal length.
    private static func array(_ texts: [String]) -> String {
        var output = Array("{".utf8)
        for (index, element) in texts.enumerated() {
            output.append(contentsOf: (index == 0 ? "\"" : ",\"").utf8)
            for byte in element.holdable.utf8 {
                if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") {
                    output.append(UInt8(ascii: "\\"))
                }
                output.append(byte)
            }
            output.append(UInt8(ascii: "\""))
        }
        output.append(UInt8(ascii: "}"))
        return String(decoding: output, as: UTF8.self)
    }
}
