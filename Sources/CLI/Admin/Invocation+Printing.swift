internal import CountersignCore
internal import Foundation
internal import GatewayModel

extension Flag {
    static let secretFile = Flag(
        "secret-file", .path("FILE"), help: "write the secret here, mode 0600, instead of printing it")
}

extension Invocation {
    func print(_ answer: JSONValue, text: () throws -> Void) throws {
        if printsJSON { try io.print(answer) } else { try text() }
    }

    /// Prints a response as JSON, or as a table with one line for each element of `columns`.
    func printTable(_ answer: JSONValue, _ columns: KeyValuePairs<String, Column>) throws {
        try print(answer) {
            try io.print(TextTable(rows: columns.map { [$0.key, $0.value.cell(answer, io.now)] }))
        }
    }

    /// Prints a response with a one-time secret: as JSON, or the secret after `notice`.
    func printSecret(_ name: String, of answer: JSONValue, notice: String) throws {
        try print(answer) {
            io.say(notice)
            try io.print(answer[name].shown)
        }
    }

    /// Calls `make`, which creates an object with a one-time secret. Prints the object's id, and the secret unless
    /// `--secret-file` receives it. If that file cannot be created or the disk is full, does not call `make`.
    func printSecret(
        _ name: String, of id: String, notice: String? = nil, _ make: () async throws -> JSONValue
    ) async throws {
        let path = try value(of: .secretFile)
        let file = try path.map { try PrivateFile(creating: $0) }
        let made: JSONValue
        do {
            made = try await make()
        } catch {
            // Deletes the empty file, because the next attempt fails if the file exists.
            if let path { unlink(path) }
            throw error
        }
        var members = made.members ?? [:]
        let secret = made[name].text
        if let file, let path {
            if let secret {
                try file.write(secret)
                members[name] = nil
                members["secret_file"] = .string(path)
            } else {
                // Some objects have no secret, such as a client with a public key.
                unlink(path)
            }
        }
        try print(.object(members)) {
            if let notice { io.say(notice) }
            try io.print(made[id].shown)
            if let secret, file == nil {
                io.say("Its secret, shown only once:")
                try io.print(secret)
            }
        }
    }

    /// Prints a list: with `-o json` as one array, with `-o jsonl` as one object per line, else as a table
    /// with numbers aligned right. With `--json`, a list that may be long is printed as one object per line.
    func printList(
        _ items: [JSONValue], _ columns: KeyValuePairs<String, Column>, empty: String, isLong: Bool = false
    ) throws {
        if printsJSON {
            let isOneALine = output == .jsonl || isLong && flagValues[Flag.output.name] == nil
            return try (isOneALine ? items : [.array(items)]).forEach { try io.print($0) }
        }
        guard !items.isEmpty else { return io.say(empty) }
        let now = io.now
        let rows = items.map { item in columns.map { $0.value.cell(item, now) } }
        let numbers = columns.indices.filter { column in rows.allSatisfy { Int64($0[column]) != nil } }
        try io.print(list: TextTable(rightAligned: Set(numbers), rows: [columns.map(\.key)] + rows))
    }
}

struct Column: ExpressibleByStringLiteral, Sendable {
    /// The text of the cell. Times are relative to the second argument, or dates if it is nil.
    let cell: @Sendable (JSONValue, _ now: Int64?) -> String

    init(_ cell: @escaping @Sendable (JSONValue) -> String) {
        self.cell = { item, _ in cell(item) }
    }

    /// A time in milliseconds since 1970.
    init(time name: String, missing: String) {
        cell = { item, now in item[name] == .null ? missing : item[name].time(from: now) }
    }

    init(stringLiteral name: String) {
        if name.hasSuffix("_ms") {
            self.init(time: name, missing: "-")
            return
        }
        self.init { item in
            switch item[name] {
            case .bool(let isTrue): isTrue ? "yes" : "no"
            case .array: item[name].joined(",")
            default: item[name].shown
            }
        }
    }
}
