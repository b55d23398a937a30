internal import CountersignCore
internal import Foundation

/// The persisted session and push token, and the customer whose `installation` was recorded. Times are in seconds
/// since 1970, because a session continues across restarts of the app.
struct BloomreachDeviceState: Codable, Sendable, Equatable {
    struct Session: Codable, Sendable, Equatable {
        var start: Double
        /// When the app went to the background or the client was closed; nil in the foreground.
        var end: Double?
        /// Time of the last recorded event, to within `seenInterval`.
        var seen: Double?
        /// True from the start or resumption of the session in this process until the app enters the background. While
        /// it is true, the session cannot time out. Not stored, because a process killed in the foreground could not
        /// reset the value.
        var isInFront = true

        private enum CodingKeys: String, CodingKey {
            case start, end, seen
        }

        init(start: Double) {
            self.start = start
        }

        init(from decoder: any Decoder) throws {
            let members = try decoder.container(keyedBy: CodingKeys.self)
            start = try members.decode(Double.self, forKey: .start)
            end = try members.decodeIfPresent(Double.self, forKey: .end)
            seen = try members.decodeIfPresent(Double.self, forKey: .seen)
            isInFront = false
        }

        func hasTimedOut(at now: Double, timeout: TimeInterval) -> Bool {
            !isInFront && lastSeen + timeout <= now
        }

        var lastSeen: Double { end ?? seen ?? start }
    }

    /// Minimum seconds between two changes of `Session.seen`, because each change is written to disk.
    private static let seenInterval: Double = 10

    struct PushToken: Codable, Sendable, Equatable {
        var token: String
        /// When `trackPushToken` last recorded the token.
        var toldAt: Double
    }

    /// Events to record, in this order.
    struct Change {
        /// End time of the earlier session, and its duration in seconds.
        var ended: (at: Double, duration: Double)?
        var began: Double?
    }

    var session: Session?
    var pushToken: PushToken?
    /// The cookie of the customer whose `installation` was recorded.
    var installedCookie: String?

    /// Continues the session when the app becomes active, unless the session has timed out. Begins no session.
    mutating func resume(now: Double, timeout: TimeInterval) {
        if session?.hasTimedOut(at: now, timeout: timeout) == false { continueSession() }
    }

    private mutating func continueSession() {
        session?.end = nil
        session?.isInFront = true
    }

    /// Stores the time of a recorded event. It becomes the session's end if the process is killed in the foreground.
    mutating func recorded(now: Double) {
        guard let session, session.isInFront, now - session.lastSeen >= Self.seenInterval else { return }
        self.session?.seen = now
    }

    mutating func enterBackground(now: Double) {
        guard let session, session.isInFront else { return }
        self.session?.end = now
        self.session?.isInFront = false
    }

    /// Begins a session if there is no session or it has timed out, otherwise continues it. After a time-out,
    /// `closesEarlier` also ends the earlier session.
    mutating func start(now: Double, timeout: TimeInterval, closesEarlier: Bool = true) -> Change {
        guard let session else {
            self.session = Session(start: now)
            return Change(began: now)
        }
        guard session.hasTimedOut(at: now, timeout: timeout) else {
            continueSession()
            return Change()
        }
        let ended = closesEarlier ? end(at: session.lastSeen) : nil
        self.session = Session(start: now)
        return Change(ended: ended, began: now)
    }

    mutating func end(now: Double) -> Change {
        Change(ended: end(at: now))
    }

    private mutating func end(at instant: Double) -> (at: Double, duration: Double)? {
        guard let session else { return nil }
        self.session = nil
        return (instant, max(0, instant - session.start))
    }
}

/// When a call of `trackPushToken` sends the token to the server.
public enum PushTokenFrequency: String, Sendable, CaseIterable {
    /// When the token has changed. The default.
    case onTokenChange = "ON_TOKEN_CHANGE"
    /// At each call of `trackPushToken`, which an app makes at each launch.
    case everyLaunch = "EVERY_LAUNCH"
    /// When the token has changed, or was last sent a day ago or earlier.
    case daily = "DAILY"
}

/// The state of the device, in memory and in a file that is written on the storage thread.
final class BloomreachDeviceRecord: Sendable {
    private let state: Lock<BloomreachDeviceState>
    private let path: String
    private let recorder: Recorder
    private let storage: Storage
    private let log: CountersignLog?

    init(directory: URL, recorder: Recorder, storage: Storage, log: CountersignLog?) {
        path = directory.appendingPathComponent("device.json").path
        self.recorder = recorder
        self.storage = storage
        self.log = log
        let stored = FileManager.default.contents(atPath: path).flatMap {
            try? JSONDecoder().decode(BloomreachDeviceState.self, from: $0)
        }
        state = Lock(stored ?? BloomreachDeviceState())
    }

    var current: BloomreachDeviceState { state.withLock { $0 } }

    func change<Result>(_ body: (inout BloomreachDeviceState) -> Result) -> Result {
        let (result, isChanged) = state.withLock { state in
            let before = state
            let result = body(&state)
            return (result, state != before)
        }
        if isChanged { save() }
        return result
    }

    private func save() {
        storage.submit { _ in
            // A wipe stops the recorder before it removes the file.
            if self.recorder.hasOptedOut { return }
            do {
                try DurableFile.write(try JSONEncoder().encode(self.current), to: self.path)
            } catch {
                self.log?(.warning, "device state could not be stored", ["error": "\(error)"])
            }
        }
    }
}
