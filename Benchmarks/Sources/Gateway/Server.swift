import Foundation

/// The process of a server under test.
final class Server {
    let url: String
    private let process: Process
    private let database: String?

    private init(url: String, process: Process, database: String?) {
        self.url = url
        self.process = process
        self.database = database
    }

    var processIdentifier: Int32 { process.processIdentifier }
    var storesEvents: Bool { database != nil }

    /// The wall clock of a server.
    enum Clock {
        case real
        /// Starts at an offset in seconds from now and runs faster by a factor. The monotonic clock does not change.
        case ahead(ofNow: Double, by: Double)
    }

    static func gateway(
        countersign: String, dataDirectory: String, clock: Clock = .real, core: Int? = nil
    ) throws -> Server {
        let output = Pipe()
        let serve = [
            "serve", "--data", dataDirectory, "--port", "0", "--requests-per-second-per-address", "0",
            "--log-level", "warning",
        ]
        let process: Process
        switch clock {
        case .real: process = try Command.start(countersign, core: core, serve, output: output)
        case .ahead(let seconds, let speed):
            let start = DateFormatter()
            start.dateFormat = "yyyy-MM-dd HH:mm:ss"
            // Preloads the library, because the program `faketime` would be the gateway's parent process.
            guard
                let library = try Command.output("sh", ["-c", "ls /usr/lib/*/faketime/libfaketimeMT.so.1"])
                    .split(separator: "\n").first
            else { throw Command.Failure(description: "libfaketime is not installed") }
            process = try Command.start(
                "env",
                [
                    "LD_PRELOAD=\(library)", "FAKETIME_DONT_FAKE_MONOTONIC=1",
                    "FAKETIME=@\(start.string(from: Date() + seconds)) x\(Int(speed))",
                    // libfaketime changes the environment of the first program that loads it, and Swift's runtime finds
                    // arguments next to the environment. So the shell is that program.
                    "sh", "-c", "exec \"$0\" \"$@\"", countersign,
                ] + serve, output: output)
        }
        var line = ""
        while let byte = try output.fileHandleForReading.read(upToCount: 1)?.first, byte != 0x0A {
            line.unicodeScalars.append(Unicode.Scalar(byte))
        }
        guard line.hasPrefix("http://") else {
            throw Command.Failure(description: "the gateway did not start: \(line)")
        }
        return Server(url: line, process: process, database: dataDirectory + "/events.sqlite")
    }

    /// HAProxy, which reads the body, checks `alg`, `sub`, `exp` and the signature, and answers with a
    /// fixed text. Nil if HAProxy is not installed.
    static func haproxy(_ credentials: Credentials, folder: URL, threads: Int, core: Int?) throws -> Server? {
        guard (try? Command.output("haproxy", ["-v"])) != nil else { return nil }
        let port = try freePort()
        let configuration = """
            global
              nbthread \(threads)
            defaults
              mode http
              timeout client 30s
              timeout server 30s
              timeout connect 5s
            frontend bench
              bind 127.0.0.1:\(port)
              option http-buffer-request
              http-request set-var(txn.bearer) http_auth_bearer
              http-request set-var(txn.alg) var(txn.bearer),jwt_header_query('$.alg')
              http-request set-var(txn.sub) var(txn.bearer),jwt_payload_query('$.sub')
              http-request set-var(txn.exp) var(txn.bearer),jwt_payload_query('$.exp','int')
              http-request set-var(txn.now) date()
              http-request deny deny_status 401 unless { var(txn.alg) -m str RS256 }
              http-request deny deny_status 401 unless { var(txn.sub) -m beg user- }
              http-request deny deny_status 401 if { var(txn.exp),sub(txn.now) -m int lt 0 }
              http-request deny deny_status 401 unless { var(txn.bearer),jwt_verify(txn.alg,"\(credentials.publicKeyPath)") -m int 1 }
              http-request return status 200 content-type application/json string '{"success":true,"accepted":1}'

            """
        let path = folder.appendingPathComponent("haproxy.cfg").path
        try configuration.write(toFile: path, atomically: true, encoding: .utf8)
        let process = try Command.start("haproxy", core: core, ["-f", path])
        return try Server(url: "http://127.0.0.1:\(port)", process: process, database: nil).whenReady()
    }

    /// A server of `Benchmarks/Peers`.
    static func peer(
        _ command: [String], database: String, _ credentials: Credentials, core: Int? = nil
    ) throws -> Server {
        let port = try freePort()
        let process = try Command.start(
            command[0], core: core,
            command.dropFirst() + [
                String(port), database, credentials.publicKeyPath, credentials.writeKey,
            ])
        return try Server(url: "http://127.0.0.1:\(port)", process: process, database: database).whenReady()
    }

    /// A port on which no program listens.
    private static func freePort() throws -> UInt16 {
        #if canImport(Glibc)
            let kind = Int32(SOCK_STREAM.rawValue)
        #else
            let kind = SOCK_STREAM
        #endif
        let socket = socket(AF_INET, kind, 0)
        defer { close(socket) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(socket, $0, length) == 0 && getsockname(socket, $0, &length) == 0
            }
        }
        guard isBound else { throw Command.Failure(description: "there is no free port") }
        return UInt16(bigEndian: address.sin_port)
    }

    private func whenReady() throws -> Server {
        for _ in 0..<250 {
            if (try? Command.output("curl", ["-s", "-o", "/dev/null", url])) != nil { return self }
            guard process.isRunning else { break }
            usleep(20_000)
        }
        throw Command.Failure(description: "a server did not start")
    }

    func kill() {
        Foundation.kill(processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    func stop() {
        process.terminate()
        process.waitUntilExit()
    }

    /// The number of events in the server's database.
    func storedEvents() throws -> Int {
        let count = try Command.output(
            "sqlite3", ["-readonly", database ?? "", "SELECT count(*) FROM event"])
        return Int(count.trimmingCharacters(in: .whitespacesAndNewlines)) ?? 0
    }

    /// The user and system time of the process (proc(5), fields 14 and 15 of `stat`), or nil without `/proc`.
    var cpuSeconds: Double? {
        guard
            let text = try? String(contentsOfFile: "/proc/\(processIdentifier)/stat", encoding: .utf8),
            let name = text.lastIndex(of: ")")
        else { return nil }
        // The field after the program's name is the third.
        let fields = text[text.index(after: name)...].split(separator: " ")
        guard fields.count > 12, let user = Double(fields[11]), let system = Double(fields[12]) else {
            return nil
        }
        return (user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
    }

    /// The bytes that the process has written to disks (proc(5), `io`), or nil without `/proc`.
    var writtenBytes: Int? {
        guard
            let text = try? String(contentsOfFile: "/proc/\(processIdentifier)/io", encoding: .utf8),
            let line = text.split(separator: "\n").first(where: { $0.hasPrefix("write_bytes:") })
        else { return nil }
        return Int(line.dropFirst("write_bytes:".count).trimmingCharacters(in: .whitespaces))
    }

    /// The resident memory of the process without pages of files, or nil without `/proc`.
    var residentMegabytes: Double? {
        guard
            let text = try? String(contentsOfFile: "/proc/\(processIdentifier)/status", encoding: .utf8),
            let line = text.split(separator: "\n").first(where: { $0.hasPrefix("RssAnon:") }),
            let kilobytes = line.split(separator: " ").compactMap({ Double($0) }).first
        else { return nil }
        return kilobytes / 1024
    }
}
