internal import CountersignCore
internal import GatewayHTTP
internal import GatewayModel

/// Responses as files: CSV or one JSON object per line.
enum Export {
    static let format = JSONMember.may("format", .choice(["ndjson", "csv"]))
    static let mediaTypes = ["application/x-ndjson", "text/csv"]

    static func isCSV(_ call: AdminCall) -> Bool { call.query("format") == "csv" }

    struct Row: Sendable {
        private let makeCells: @Sendable () -> [String]
        let line: [UInt8]

        init(cells: @autoclosure @escaping @Sendable () -> [String], line: [UInt8]) {
            makeCells = cells
            self.line = line
        }

        var cells: [String] { makeCells() }
    }

    static func list(
        _ call: AdminCall, name: String, columns: [String], from start: Int64,
        page: @escaping @Sendable (Int64) throws -> (rows: [Row], next: Int64?)
    ) -> HTTPResponse {
        let isCSV = isCSV(call)
        let state = Lock<(next: Int64?, hasBegun: Bool)>((start, false))
        let stream = ListStream {
            let (position, hasBegun) = state.withLock { $0 }
            guard let position else { return nil }
            let (rows, next) = try page(position)
            state.withLock { $0 = (next, true) }
            var bytes: [UInt8] = []
            if isCSV, !hasBegun { CSV.write(columns, to: &bytes) }
            for row in rows {
                if isCSV {
                    CSV.write(row.cells, to: &bytes)
                } else {
                    bytes.append(contentsOf: row.line)
                    bytes.append(0x0A)
                }
            }
            return bytes
        }
        var response = response(isCSV: isCSV, name: name)
        response.stream = stream.body
        return response
    }

    static func response(isCSV: Bool, name: String, body: [UInt8] = []) -> HTTPResponse {
        HTTPResponse(
            status: 200,
            headers: [
                ("Content-Type", isCSV ? "text/csv; charset=utf-8" : "application/x-ndjson"),
                ("Content-Disposition", "attachment; filename=\"\(name).\(isCSV ? "csv" : "ndjson")\""),
            ] + AdminAnswer.headers, body: body)
    }
}
