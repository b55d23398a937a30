internal import CountersignCore

/// What `countersign top` shows of a gateway: the admin API's overview and list of apps, for people.
struct TopScreen: Sendable {
    /// The apps that are shown, those with the most requests.
    private static let mostApps = 20

    let place: String
    let overview: JSONValue
    let apps: [JSONValue]

    var lines: [String] {
        let ready = overview["ready"]
        let minute = overview["last_minute"]
        let storage = overview["storage"]
        // Nobody says what is free on a database server's disk.
        let free = storage["free_bytes"].integer == nil ? "" : "; \(Self.size(storage["free_bytes"])) free"
        let failing = ready["checks"].elements.filter { $0["ok"] == .bool(false) }
        var lines = [
            "\(place)  \(ready["ok"] == .bool(true) ? "ready" : "NOT READY")  version \(overview["version"].shown), up \(Quantity.about(seconds: uptime))",
            "Last minute: \(minute["accepted"].shown) requests accepted, \(minute["rejected"].shown) rejected, \(minute["events"].shown) events",
            "Stored: \(storage["events"].shown) events, \(Self.size(storage["file_bytes"]))\(free)",
        ]
        lines += failing.map { "! \($0["name"].shown): \($0["detail"].shown)" }
        lines += overview["warnings"].elements.map { "! \($0["text"].text ?? $0.shown)" }
        lines.append("")
        return lines + table
    }

    private var uptime: Int64 {
        max(0, overview["now_ms"].count - overview["started_ms"].count) / 1_000
    }

    private var table: [String] {
        if apps.isEmpty { return ["No app yet. Next: countersign app create shop"] }
        func count(_ app: JSONValue, _ name: String) -> Int64 { app["last_24h"][name].count }
        let busiest = apps.sorted {
            (count($1, "requests"), $0["id"].shown) < (count($0, "requests"), $1["id"].shown)
        }
        var table = TextTable(rightAligned: [2, 3, 4, 5])
        table.add("APP", "ENFORCEMENT", "REQUESTS IN 24 H", "REJECTED", "WARNED", "FAILING")
        for app in busiest.prefix(Self.mostApps) {
            // The gateway could not read its counts.
            if app["last_24h"] == .null {
                table.add(app["id"].shown, app["enforcement"].shown, "-", "-", "-", "-")
                continue
            }
            let requests = count(app, "requests")
            let failing = count(app, "rejected") + count(app, "warned")
            table.add(
                app["id"].shown, app["enforcement"].shown, "\(requests)", "\(count(app, "rejected"))",
                "\(count(app, "warned"))",
                requests == 0 ? "-" : "\((failing * 100 + requests / 2) / requests) %")
        }
        return table.lines
            + (apps.count > Self.mostApps ? ["… and \(apps.count - Self.mostApps) more apps"] : [])
    }

    /// Bytes in decimal units, as disks are sold.
    private static func size(_ bytes: JSONValue) -> String {
        guard let bytes = bytes.integer else { return "-" }
        if bytes < 1_000 { return "\(bytes) B" }
        var tenths = bytes / 100
        for unit in ["kB", "MB", "GB"] {
            if tenths < 10_000 { return "\(tenths / 10).\(tenths % 10) \(unit)" }
            tenths /= 1_000
        }
        return "\(tenths / 10).\(tenths % 10) TB"
    }
}
