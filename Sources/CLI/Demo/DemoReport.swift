struct DemoReport: Sendable {
    struct Device: Sendable {
        let plan: DemoPlan.Device
        let recorded: Int
        let identified: [String: Int]
        let tally: DemoNetwork.Tally
        /// The number of tokens that replaced an expired or rejected one.
        let refreshed: Int
        let queued: Int
    }

    let devices: [Device]

    var lines: [String] {
        var table = TextTable(rightAligned: [1, 2, 3, 4])
        table.add("DEVICE", "RECORDED", "DELIVERED", "REFRESHED", "QUEUED", "REJECTED", "NOTE")
        for device in devices {
            let identified = device.identified.values.reduce(0, +)
            let rejections = device.tally.rejections.sorted { $0.key < $1.key }
                .map { "\($0.key) x\($0.value)" }.joined(separator: ", ")
            table.add(
                device.plan.name, String(device.recorded + identified), String(device.tally.delivered),
                String(device.refreshed), String(device.queued), rejections.isEmpty ? "-" : rejections,
                note(on: device))
        }
        return table.lines
    }

    private func note(on device: Device) -> String {
        var notes: [String] = []
        switch device.plan.role {
        case .steady: break
        case .losesNetwork: notes.append("had no network for \(device.tally.cut) requests")
        case .forged: notes.append("its tokens are signed with a key of its own")
        }
        if device.tally.duplicates > 0 { notes.append("\(device.tally.duplicates) sent twice, stored once") }
        return notes.joined(separator: "; ")
    }
}
