internal import Foundation

extension Doctor {
    var missing: Finding? {
        guard [ENOENT, ENOTDIR].contains(obstacle(dataDirectory, F_OK)) else { return nil }
        return .failed(
            "data directory", "there is no folder \(dataDirectory)",
            "give the gateway's with --data PATH or $COUNTERSIGN_DATA; `countersign serve` creates a new one",
            code: .notFound)
    }

    private var quoted: String { dataDirectory.quotedForShell }

    var folder: Finding {
        let name = "data directory"
        for (mode, verb) in [(F_OK, "find"), (R_OK, "read"), (X_OK, "open"), (W_OK, "write")] {
            let error = obstacle(dataDirectory, mode)
            if error != 0 { return closed(dataDirectory, name: name, to: verb, error) }
        }
        guard mode(of: dataDirectory) & 0o077 == 0 else {
            return .failed(name, "others can read or write \(dataDirectory)", "chmod 700 \(quoted)")
        }
        return .ok(name, dataDirectory)
    }

    var closedDatabases: [Finding] {
        paths(endingIn: [".sqlite"]).compactMap { path in
            for file in [path, path + "-wal", path + "-shm"] {
                let error = obstacle(file, R_OK | W_OK)
                guard error != 0, error != ENOENT else { continue }
                return closed(
                    file, name: URL(fileURLWithPath: path).lastPathComponent, to: "read and write", error)
            }
            return nil
        }
    }

    /// Checks the modes and owners of files, which a copy or a command of another account may have changed.
    var files: [Finding] {
        let paths = paths(endingIn: [".sqlite", ".sqlite-wal", ".sqlite-shm", ".lock", ".json"])
        var findings: [Finding] = []
        let open = paths.filter { mode(of: $0) & 0o077 != 0 }
        if !open.isEmpty {
            findings.append(
                .warning(
                    "files", "others can read or write \(open.joined(separator: ", "))",
                    "chmod 600 " + open.map(\.quotedForShell).joined(separator: " ")))
        }
        let account = owner(of: dataDirectory)
        let foreign = paths.filter { owner(of: $0) != account }
        if let first = foreign.first, let account {
            findings.append(
                .warning(
                    "files",
                    "\(foreign.joined(separator: ", ")) belongs to \(owner(of: first) ?? "nobody known"), "
                        + "the folder to \(account)", "sudo chown -R \(account) \(quoted)"))
        }
        guard findings.isEmpty else { return findings }
        return [.ok("files", "only their owner can read them")]
    }

    func closed(
        _ path: String, name: String, to verb: String, _ error: Int32, _ consequence: String = ""
    ) -> Finding {
        guard error == EACCES || error == EPERM else {
            return .failed(name, "cannot \(verb) \(path): \(String(cString: strerror(error)))\(consequence)")
        }
        let here = account(getuid())
        let owner = owner(of: path) ?? owner(of: dataDirectory)
        let detail = "this account, \(here), cannot \(verb) \(path)"
        let belongs = owner.map { ", which belongs to \($0)" } ?? ""
        let remedy =
            owner == here
            ? "chmod u+rwX \(path.quotedForShell)"
            : "sudo -u \(owner ?? "ACCOUNT") countersign doctor --data \(quoted); or, if the gateway is to run "
                + "as \(here), sudo chown -R \(here) \(quoted)"
        return .failed(name, detail + belongs + consequence, remedy)
    }

    private func paths(endingIn endings: [String]) -> [String] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: dataDirectory)) ?? []
        return names.filter { name in endings.contains { name.hasSuffix($0) } }.sorted()
            .map { dataDirectory + "/" + $0 }
    }

    private func mode(of path: String) -> Int {
        var status = stat()
        return stat(path, &status) == 0 ? Int(status.st_mode) : 0
    }

    private func owner(of path: String) -> String? { ownerID(path).map { account($0) } }

    private func account(_ id: uid_t) -> String {
        var buffer = [CChar](repeating: 0, count: 4096)
        var entry = passwd()
        var found: UnsafeMutablePointer<passwd>?
        guard getpwuid_r(id, &entry, &buffer, buffer.count, &found) == 0, found != nil else { return "\(id)" }
        return String(cString: entry.pw_name)
    }
}
