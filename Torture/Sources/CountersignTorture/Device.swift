internal import Countersign
internal import CountersignTransport
internal import Foundation

/// A device as its own process: records events and writes the id of each into a journal once the SDK says that it is
/// stored.
///
/// Arguments: directory, endpoint, write key, token file, journal, prefix, number of events, `online` or `offline`.
struct Device {
    let directory: URL
    let endpoint: URL
    let writeKey: String
    let tokenFile: String
    let journal: Journal
    let prefix: String
    let count: Int
    let isOnline: Bool

    init(arguments: [String]) throws {
        guard arguments.count == 8, let endpoint = URL(string: arguments[1]), let count = Int(arguments[6])
        else {
            throw TortureError("device needs 8 arguments")
        }
        directory = URL(fileURLWithPath: arguments[0])
        self.endpoint = endpoint
        writeKey = arguments[2]
        tokenFile = arguments[3]
        journal = try Journal(path: arguments[4])
        prefix = arguments[5]
        self.count = count
        isOnline = arguments[7] == "online"
    }

    func run() async throws {
        var configuration = CountersignConfiguration(endpoint: endpoint, writeKey: writeKey)
        configuration.dataDirectory = directory
        configuration.networkRetry = RetryPolicy(baseDelay: 0.02, maximumDelay: 0.1, maximumServerDelay: 0.1)
        configuration.flushPolicy =
            isOnline ? FlushPolicy(eventCount: 5, interval: 0.02, onBackground: false) : .manual
        let client = try CountersignClient(configuration: configuration)
        client.identify(userID: "ada", token: try String(contentsOfFile: tokenFile, encoding: .utf8))
        print("go")
        fflush(nil)
        for number in 0..<count {
            let start = SystemClock().uptime
            let id: String
            do {
                id = try await client.record(
                    "\(prefix)-\(number)", properties: ["n": .integer(Int64(number))])
            } catch {
                // An event whose storing failed with an error is not lost.
                journal.write("refused \(error)")
                continue
            }
            journal.write("\(id) \(Int((SystemClock().uptime - start) * 1_000_000))")
        }
        if isOnline {
            for _ in 0..<600 where await client.flush().isComplete == false {
                try await Task.sleep(nanoseconds: 50_000_000)
            }
        }
        await client.close()
        print("done")
    }
}

/// Writes rows and a journal with a database that is *not* durable, to show that the power-failure model detects losses.
///
/// Arguments: database, journal, number of rows.
struct Control {
    let database: Database
    let journal: Journal
    let count: Int

    init(arguments: [String]) throws {
        guard arguments.count == 3, let count = Int(arguments[2]) else {
            throw TortureError("control needs 3 arguments")
        }
        database = try Database(path: arguments[0])
        journal = try Journal(path: arguments[1])
        self.count = count
    }

    func run() throws {
        for statement in [
            "PRAGMA journal_mode = WAL", "PRAGMA synchronous = NORMAL", "CREATE TABLE row (id TEXT)",
        ] {
            try database.rows(statement)
        }
        print("go")
        fflush(nil)
        for number in 0..<count {
            try database.rows("INSERT INTO row (id) VALUES (?)", "\(number)")
            journal.write("\(number) 0")
        }
    }
}

/// A file of lines that survive a kill of the process, written without the code under test.
///
/// A kill may cut a line: Linux ends a `write` between two pages of the file if a SIGKILL is pending. So each line
/// begins with a line break, which separates it from a cut line, and ends with a terminator, which a cut line lacks.
final class Journal: Sendable {
    private static let terminator = " ."
    private let handle: FileHandle

    init(path: String) throws {
        // Several processes append to one journal.
        let file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw TortureError("cannot open \(path)") }
        handle = FileHandle(fileDescriptor: file, closeOnDealloc: true)
    }

    func write(_ line: String) {
        handle.write(Data(("\n" + line.replacingOccurrences(of: "\n", with: " ") + Self.terminator).utf8))
    }

    /// The lines, except lines that a kill has cut.
    static func lines(_ path: String) throws -> [Substring] {
        try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
            .filter { $0.hasSuffix(terminator) }.map { $0.dropLast(terminator.count) }
    }

    /// The ids, each with the duration of its call in microseconds, without rejected events.
    static func read(_ path: String) throws -> [(id: String, microseconds: Int)] {
        try lines(path).compactMap { line in
            let parts = line.split(separator: " ")
            guard parts.count == 2, let time = Int(parts[1]), parts[0] != "refused" else { return nil }
            return (String(parts[0]), time)
        }
    }
}
