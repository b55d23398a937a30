struct DemoPlan: Sendable, Equatable {
    enum Role: Sendable, Equatable {
        case steady
        /// Has no network for a third of the run.
        case losesNetwork
        /// Its tokens are signed with an unknown key.
        case forged
    }

    /// An event and its number in the replay, which identifies it in the database.
    struct Row: Sendable, Equatable {
        let number: Int
        let event: ReplayEvent
    }

    struct Device: Sendable, Equatable {
        let name: String
        let role: Role
        let appVersion: String
        /// The events grouped by user, in the order of the replay.
        var rows: [Row] = []
    }

    static let forgedUser = "mallory"

    let devices: [Device]

    /// The events of all devices except the one with forged tokens.
    var honestRows: [Row] { devices.filter { $0.role != .forged }.flatMap(\.rows) }

    /// Assigns each user, the busiest first, to the device with the fewest events. Adds the device with
    /// forged tokens, which records its own events.
    init(replay: Replay, devices count: Int) {
        var rowsOfUser: [String: [Row]] = [:]
        var users: [String] = []
        for (number, event) in replay.events.enumerated() {
            if rowsOfUser[event.userID] == nil { users.append(event.userID) }
            rowsOfUser[event.userID, default: []].append(Row(number: number, event: event))
        }
        let honest = max(1, min(count - 1, users.count))
        var devices = (0..<honest).map { index in
            Device(
                name: "device-\(index + 1)", role: index == min(1, honest - 1) ? .losesNetwork : .steady,
                appVersion: index % 2 == 0 ? "2.0" : "1.9")
        }
        let busiestFirst = users.enumerated().sorted { first, second in
            let counts = (rowsOfUser[first.element]?.count ?? 0, rowsOfUser[second.element]?.count ?? 0)
            return counts.0 == counts.1 ? first.offset < second.offset : counts.0 > counts.1
        }
        for (_, user) in busiestFirst {
            let lightest = devices.indices.min { devices[$0].rows.count < devices[$1].rows.count } ?? 0
            devices[lightest].rows += rowsOfUser[user] ?? []
        }
        var sample = ShopSample(seed: 1)
        let forged = sample.events(userID: Self.forgedUser, count: 20).enumerated().map { index, event in
            Row(number: replay.events.count + index, event: event)
        }
        devices.append(Device(name: "device-\(honest + 1)", role: .forged, appVersion: "1.9", rows: forged))
        self.devices = devices
    }
}
