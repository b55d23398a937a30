import Foundation

/// Measures the gateway with `wrk`.
///
/// `make bench` builds and runs this program. Figures of different runs differ by 20 % and more on a shared machine, so
/// tables have ratios to HAProxy, which is measured in turns with the gateway. HAProxy verifies the same tokens
/// (`jwt_verify`, `sub` and `exp`), answers with a fixed text and stores nothing.
@main struct GatewayBenchmark {
    enum Tokens {
        /// A valid token for each of a number of users, chosen at random.
        case users(Int)
        /// More valid tokens of a number of users than fit into the gateway's cache, in turn, so that each is verified
        /// in full.
        case freshOfUsers(Int)
        case expired, forged

        /// The name of the file with the tokens.
        var file: String {
            switch self {
            case .users(let count): "users-\(count)"
            case .freshOfUsers(let count): "fresh-users-\(count)"
            case .expired, .forged: "\(self)"
            }
        }

        /// The number of users whose events are sent.
        var users: Int {
            switch self {
            case .users(let count), .freshOfUsers(let count): count
            case .expired, .forged: 1
            }
        }
    }

    private static let usage = """
        usage: Gateway PATH-OF-COUNTERSIGN compare [SECONDS] [ROUNDS] [EVENTS-STORED...]
               Gateway PATH-OF-COUNTERSIGN views [REQUESTS]
               Gateway PATH-OF-COUNTERSIGN floods [SECONDS]
               Gateway PATH-OF-COUNTERSIGN dashboards [SECONDS] [EVENTS-STORED]
               Gateway PATH-OF-COUNTERSIGN readers [SECONDS] [EVENTS-STORED] [SECONDS-TO-FILL]
        """

    static func main() throws {
        let arguments = CommandLine.arguments
        guard arguments.count > 2 else { fail(usage) }
        let numbers = arguments.dropFirst(3).compactMap { Int($0) }
        func number(_ index: Int, or standard: Int) -> Int {
            index < numbers.count ? numbers[index] : standard
        }
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "bench-\(UUID().uuidString)")
        let countersign = arguments[1]
        do {
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(at: folder) }
            switch arguments[2] {
            case "compare":
                try Comparison(
                    countersign: countersign, folder: folder, seconds: number(0, or: 3),
                    rounds: number(1, or: 3),
                    sizes: numbers.count > 2 ? Array(numbers[2...]) : [1_000_000, 10_000_000],
                    chart: URL(fileURLWithPath: "Benchmarks/.build/chart.tsv")
                ).run()
            case "views":
                try Views(countersign: countersign, folder: folder, requests: number(0, or: 1_000_000)).run()
            case "floods":
                try Floods(countersign: countersign, folder: folder, seconds: number(0, or: 10)).run()
            case "dashboards":
                try Dashboards(
                    countersign: countersign, folder: folder, events: number(1, or: 200_000),
                    seconds: number(0, or: 5)
                ).run()
            case "readers":
                try Readers(
                    countersign: countersign, folder: folder, events: number(1, or: 1_000_000),
                    seconds: number(0, or: 5), secondsToFill: Double(number(2, or: 600))
                ).run()
            default: fail(usage)
            }
        } catch {
            fail("\(error)")
        }
    }

    private static func fail(_ text: String) -> Never {
        print(text)
        exit(2)
    }
}
