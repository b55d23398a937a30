internal import CountersignCore
internal import Foundation
internal import GatewayModel
internal import GatewayStorage

/// Writes an app's events of each completed hour to a compressed file.
///
/// A file is listed in the manifest once it is durable. After a crash, at most one unlisted file remains,
/// which is deleted and written again.
final class EventFileWay: Way {
    private static let hour: Int64 = 3_600_000
    /// The number of events between checks of the free space and of ``close()``.
    private static let checkEvery = 500

    private struct State {
        var isClosed = false
        /// The sequence number of the manifest's last event when this way last read or wrote it; nil before.
        var known: Int64?
    }

    private let appID: String
    private let output: FileOutput
    private let state = Lock(State())

    init(of appID: String, _ output: FileOutput) {
        self.appID = appID
        self.output = output
    }

    func close() {
        state.withLock { $0.isClosed = true }
        output.closed(appID)
    }

    func accept(_ batch: DeliveryBatch, _ done: @escaping @Sendable (DeliveryAnswer) -> Void) {
        output.run { [self] in
            do {
                let answer = try write(batch)
                if case .delivered = answer { output.succeeded(appID) }
                done(answer)
            } catch {
                let reason = FileProblem.text(error)
                output.failed(appID, reason)
                // The way may have been closed during the write.
                if isClosed { output.closed(appID) }
                done(.retry(DeliveryFailure("storage", reason)))
            }
        }
    }

    private var isClosed: Bool { state.withLock { $0.isClosed } }

    private func write(_ batch: DeliveryBatch) throws -> DeliveryAnswer {
        guard !isClosed, let positions = batch.positions else { return .notTried }
        var manifest = try EventFileManifest(folder: output.folder + "/" + appID)
        let checkpoint = try checkpoint(in: manifest, positions)
        let isKnown = state.withLock { state in
            defer { state.known = checkpoint }
            return state.known == checkpoint
        }
        let committed = batch.progress.committed
        // The stored position may be ahead of the manifest, because the position also moves past other apps' events.
        guard checkpoint == committed || isKnown && checkpoint < committed else {
            return .moved(to: checkpoint, receiver: 0)
        }
        guard let first = batch.events.first else { return .delivered(through: committed) }
        let now = Milliseconds(output.now()).count
        let end = now - now % Self.hour
        guard Self.isDue(first, before: end) else { return .wait(untilMilliseconds: end + Self.hour) }
        let hour = first.receivedMilliseconds - first.receivedMilliseconds % Self.hour
        let name = HourlyFileName.next(of: hour, after: manifest.last?.file)
        let file = try ZstdFile(path: manifest.folder + "/" + name)
        var pages = EventPages(batch)
        guard let part = try fill(file, from: &pages, until: hour + Self.hour, before: end, positions) else {
            return .notTried
        }
        // After ``close()``, another gateway may write to the folder.
        guard !isClosed else { return .notTried }
        let sum = try file.finish()
        try manifest.add(
            EventFileManifest.Entry(
                file: name, first: positions.text(after: first.sequence, in: appID),
                last: positions.text(after: part.last, in: appID), events: part.events, bytes: file.bytes,
                sha256: sum.hexadecimal, isAfterGap: pages.gap.isOpen))
        state.withLock { $0.known = part.last }
        return .delivered(through: part.last)
    }

    /// False for an event received in the current hour or, because of clock differences, in the next hour.
    /// Events dated later were stored while the clock was ahead. They are exported so that they do not block
    /// the following events.
    private static func isDue(_ event: StoredEvent, before end: Int64) -> Bool {
        !(end..<end + 2 * hour).contains(event.receivedMilliseconds)
    }

    /// The sequence number of the last exported event; 0 before the first.
    private func checkpoint(
        in manifest: EventFileManifest, _ positions: EventPositions
    ) throws(GatewayError) -> Int64 {
        guard let last = manifest.last else { return 0 }
        do throws(EventPositions.Fault) {
            return try positions.sequence(of: last.last, in: appID)
        } catch {
            throw GatewayError(
                .storage, "\(manifest.folder) cannot be continued: \(error.reason); or move the folder away")
        }
    }

    /// Writes events until the first event of a later hour or the maximum size. Events received in an earlier hour
    /// keep their position in the order. Returns nil when closed.
    private func fill(
        _ file: ZstdFile, from pages: inout EventPages, until hourEnd: Int64, before end: Int64,
        _ positions: EventPositions
    ) throws -> (events: Int, last: Int64)? {
        var (events, last, bytes) = (0, Int64(0), 0)
        let texts = positions.of(appID)
        while let event = try pages.first, Self.isDue(event, before: end),
            event.receivedMilliseconds < hourEnd, bytes < output.longestFile
        {
            if events % Self.checkEvery == 0 {
                if isClosed { return nil }
                try checkSpace()
            }
            var line: [UInt8] = []
            event.write(to: &line, position: texts.text(after: event.sequence), asLine: true)
            line.append(0x0A)
            try file.write(line)
            (events, last, bytes) = (events + 1, event.sequence, bytes + line.count)
            pages.removeFirst()
        }
        return (events, last)
    }

    private func checkSpace() throws(GatewayError) {
        guard let free = DiskSpace.free(at: output.folder), free < output.freeBytes else { return }
        throw GatewayError(
            .storage,
            "only \(free) bytes are free for \(output.folder); event files need \(output.freeBytes)")
    }
}

/// The events of a batch and the events that follow the batch.
private struct EventPages {
    private let follow: @Sendable (Int64) throws -> EventRange
    private var page: ArraySlice<StoredEvent>
    private var scannedThrough: Int64
    private var isLast: Bool
    private var pageGap: EventGap
    /// The events that retention deleted before or between the removed events.
    private(set) var gap = EventGap.none

    init(_ batch: DeliveryBatch) {
        follow = batch.follow
        page = batch.events[...]
        scannedThrough = batch.scannedThrough
        isLast = !batch.hasMore
        pageGap = batch.gap
    }

    var first: StoredEvent? {
        mutating get throws {
            while page.isEmpty, !isLast {
                let found = try follow(scannedThrough)
                page = found.events[...]
                scannedThrough = found.scannedThrough
                isLast = !found.hasMore
                pageGap = pageGap.joined(with: found.gap)
            }
            return page.first
        }
    }

    mutating func removeFirst() {
        page.removeFirst()
        gap = gap.joined(with: pageGap)
        pageGap = .none
    }
}
