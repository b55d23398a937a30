internal import CountersignCore
internal import CountersignJOSE
internal import GatewayModel
internal import GatewayStorage

/// Where gateways of one database leave the last good set of a key source for each other.
struct SharedKeySet: Sendable {
    struct Copy: Sendable {
        let json: String
        /// Seconds since 1970.
        let fetchedAt: Double
    }

    /// Seconds by which the gateways' clocks may differ.
    static let tolerance = 60.0

    /// The newest; nil when there is none or it cannot be read now.
    let read: @Sendable () -> Copy?
    /// Leaves one, unless there is a newer one.
    let write: @Sendable (Copy) -> Void

    init(read: @escaping @Sendable () -> Copy?, write: @escaping @Sendable (Copy) -> Void) {
        self.read = read
        self.write = write
    }

    /// The set of one app's source.
    init(in cluster: any Cluster, source: KeySource, of appID: String) {
        let digest = SHA256.digest("\(appID)\n\(source.url)").hexadecimal
        let name = ClusterNote.Name(.publishedKeys, digest)
        self.init(
            read: {
                // What cannot be read now is read at the next look.
                try? cluster.change([name]) { $0[name].flatMap(Copy.init(note:)) }
            },
            write: { copy in
                _ = try? cluster.change([name]) { notes in
                    let newest = notes[name].flatMap(Copy.init(note:))
                    let time = newest?.fetchedAt ?? 0
                    if copy.fetchedAt > time || copy.fetchedAt < time - Self.tolerance {
                        notes[name] = copy.note
                    }
                }
            })
    }
}

extension SharedKeySet.Copy {
    fileprivate init?(note: JSONValue) {
        guard case .array(let parts) = note, parts.count == 2, let time = Double(jsonValue: parts[0]),
            let json = String(jsonValue: parts[1])
        else { return nil }
        self.init(json: json, fetchedAt: time)
    }

    fileprivate var note: JSONValue { .array([.number(fetchedAt), .string(json)]) }
}
