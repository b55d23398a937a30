internal import CPostgreSQL
internal import CountersignCore
internal import Foundation
internal import GatewayModel

/// The statement that stores the ids of batches, and then the events with new ids. A single statement is its own
/// transaction, which saves the round trips of `BEGIN` and `COMMIT`.
enum EventInsert {
    /// The statement also adds the events to the counts of a writer (`$1`). Its rows are the ordinals of duplicates.
    static func sql(base: Int64) -> String {
        """
        WITH u AS MATERIALIZED (
            SELECT (SELECT \(base) + (pg_current_xact_id()::text::bigint << 12)) + n AS position, u.*
            FROM unnest(\(columns.indices.map { "$\($0 + 2)" }.joined(separator: ", ")))
                AS u (\(columns.map(\.name).joined(separator: ", "))))
        , fresh AS (
            INSERT INTO message_id (bucket, app_id, id, sender, position)
                SELECT bucket, app_id, message_id, whose, position FROM u
                ON CONFLICT DO NOTHING RETURNING position)
        , stored AS (
            INSERT INTO event (position, day, \(kept))
                SELECT position, (received_ms / 86400000)::int, \(kept) FROM u
                WHERE position IN (SELECT position FROM fresh)
                RETURNING app_id, octet_length(body) AS bytes)
        , counted AS (
            INSERT INTO app_usage AS own (app_id, lane, events, bytes)
                SELECT app_id, $1, count(*), sum(bytes) FROM stored GROUP BY app_id
                ON CONFLICT (app_id, lane)
                DO UPDATE SET events = own.events + excluded.events, bytes = own.bytes + excluded.bytes)
        SELECT n FROM u WHERE position NOT IN (SELECT position FROM fresh)
        """
    }

    private static let columns: [(name: String, element: BinaryArray.Element)] = [
        ("n", .int4), ("bucket", .int4), ("whose", .text), ("app_id", .text), ("message_id", .text),
        ("type", .text), ("user_id", .text), ("anonymous_id", .text), ("name", .text),
        ("timestamp_ms", .int8), ("received_ms", .int8), ("sender", .text), ("verdict", .text),
        ("code", .int4), ("key_id", .text), ("enforcement", .text), ("dialect", .text),
        ("request_id", .text), ("token_id", .text), ("claims", .text), ("body", .text),
    ]
    private static let kept = columns.dropFirst(3).map(\.name).joined(separator: ", ")

    struct Row {
        let batch: Int
        let event: Int
        /// The number of the event in the order of arrival, from 1.
        let ordinal: Int32
        let key: MessageKey
    }

    /// `rows` must be in the order of ``rows(of:)``.
    static func parameters(_ rows: [Row], of batches: [EventBatch], lane: Int32) -> Parameters {
        var arrays = columns.map { BinaryArray($0.element, count: rows.count) }
        arrays[columns.count - 1].reserve(
            rows.reduce(0) { $0 + batches[$1.batch].events[$1.event].json.count + 4 })
        for row in rows {
            let batch = batches[row.batch]
            let event = batch.events[row.event]
            let proof = batch.proof
            arrays[0].add(row.ordinal)
            arrays[1].add(row.key.bucket)
            arrays[2].add(row.key.whose)
            arrays[3].add(batch.appID)
            arrays[4].add(event.messageID)
            arrays[5].add(event.kind.rawValue)
            arrays[6].add(event.userID)
            arrays[7].add(event.anonymousID)
            arrays[8].add(event.name)
            arrays[9].add(event.timestampMilliseconds)
            arrays[10].add(batch.receivedMilliseconds)
            arrays[11].add(event.sender)
            arrays[12].add(proof?.verdict.rawValue)
            arrays[13].add((proof?.code).map { Int32(clamping: $0) })
            arrays[14].add(proof?.keyID)
            arrays[15].add(proof?.enforcement)
            arrays[16].add(proof?.dialect)
            arrays[17].add(proof?.requestID)
            arrays[18].add(proof?.tokenID)
            arrays[19].add(proof?.claims)
            batch.body.withUnsafeBytes { arrays[20].add(UnsafeRawBufferPointer(rebasing: $0[event.json])) }
        }
        var parameters = Parameters()
        parameters.reserve(arrays.reduce(8) { $0 + $1.bytes.count })
        withUnsafeBytes(of: lane.bigEndian) { parameters.add(ServerType.int4, $0) }
        for (array, column) in zip(arrays, columns) {
            let type =
                switch column.element {
                case .int4: ServerType.int4Array
                case .int8: ServerType.int8Array
                case .text: ServerType.textArray
                }
            array.bytes.withUnsafeBytes { parameters.add(type, $0) }
        }
        return parameters
    }

    /// The rows in the order in which all writers insert ids. Another order could cause a deadlock.
    static func rows(of batches: [EventBatch]) -> [Row] {
        var rows: [Row] = []
        var ordinal: Int32 = 0
        for (number, batch) in batches.enumerated() {
            for (place, event) in batch.events.enumerated() {
                ordinal += 1
                rows.append(
                    Row(
                        batch: number, event: place, ordinal: ordinal,
                        key: MessageKey(EventIdentity(event, in: batch.appID))))
            }
        }
        rows.sort { one, other in
            if one.key != other.key { return one.key < other.key }
            return one.ordinal < other.ordinal
        }
        return rows
    }
}
