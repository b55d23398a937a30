internal import Foundation

struct DemoProgress: Sendable {
    let devices: [DemoDevice]
    let io: CommandIO

    func show() async {
        let start = Date()
        while !Task.isCancelled {
            try? await Task.sleep(for: .seconds(io.isInteractive ? 0.2 : 2))
            let line = text(seconds: Date().timeIntervalSince(start))
            io.talk(io.isInteractive ? io.inPlace(line) : "\(line)\n")
        }
        if io.isInteractive { io.talk("\n") }
    }

    private func text(seconds: Double) -> String {
        let total = devices.reduce(0) { $0 + $1.plan.rows.count }
        let recorded = devices.reduce(0) { $0 + $1.recorded }
        let tallies = devices.map(\.network.tally)
        let delivered = tallies.reduce(0) { $0 + $1.delivered }
        let rejected = tallies.reduce(0) { $0 + $1.rejections.values.reduce(0, +) }
        let delays = devices.compactMap { device in
            device.network.delay.map { "\(device.plan.name) \($0)" }
        }
        return String(format: "%5.1f s", seconds)
            + "  recorded \(recorded) of \(total) events, delivered \(delivered), rejected requests \(rejected)"
            + delays.map { "; \($0)" }.joined()
    }
}
