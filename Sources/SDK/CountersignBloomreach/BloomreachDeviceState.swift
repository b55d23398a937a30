internal import CountersignCore
internal import Foundation

/// What is remembered of the device between two runs: the session, the push token, and which customer's installation was
/// told.
///
/// Instants are in seconds since 1970: a session goes on over a restart of the app.
struct BloomreachDeviceState: Codable, Sendable, Equatable {
    /// A session that was begun.
    struct Session: Codable, Sendable, Equatable {
        var start: Double
        /// When the app went to the background or the client was closed; nil while the app is in front.
        var end: Double?
        /// When something was recorded in it, to a few seconds; nil if nothing was.
        var seen: Double?
        /// Whether this process has seen the app in front since, so that the session cannot have timed out. Not stored: a
        /// process that was killed in front leaves neither this nor an end.
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

        /// Whether the app has been away for so many seconds that another session begins.
        func hasTimedOut(at now: Double, timeout: TimeInterval) -> Bool {
            !isInFront && lastSeen + timeout <= now
        }

        /// When the app was last known to be in front.
        var lastSeen: Double { end ?? seen ?? start }
    }

    /// Seconds between two changes of `Session.seen`, each of which is written to disk.
    private static let seenInterval: Double = 10

    /// A token for push notifications.
    struct PushToken: Codable, Sendable, Equatable {
        var token: String
        /// When it was last told.
        var toldAt: Double
    }

    /// What a change of the session leads to, in this order.
    struct Change {
        /// When the earlier session ended, and how many seconds it took.
        var ended: (at: Double, duration: Double)?
        /// When the present one began.
        var began: Double?
    }

    var session: Session?
    var pushToken: PushToken?
    /// The cookie of the customer whose installation was told.
    var installedCookie: String?

    /// The app has come to the front.
    mutating func enterForeground(now: Double, timeout: TimeInterval) -> Change {
        guard let session else {
            self.session = Session(start: now)
            return Change(began: now)
        }
        guard session.hasTimedOut(at: now, timeout: timeout) else {
            continueSession()
            return Change()
        }
        let ended = end(at: session.lastSeen)
        self.session = Session(start: now)
        return Change(ended: ended, began: now)
    }

    /// As `enterForeground`, for apps that begin sessions themselves. A session that has timed out is not changed.
    mutating func resume(now: Double, timeout: TimeInterval) {
        if session?.hasTimedOut(at: now, timeout: timeout) == false { continueSession() }
    }

    private mutating func continueSession() {
        session?.end = nil
        session?.isInFront = true
    }

    /// Notes the time of a recorded event. It is the end of the session if the process is killed in the foreground.
    mutating func recorded(now: Double) {
        guard let session, session.isInFront, now - session.lastSeen >= Self.seenInterval else { return }
        self.session?.seen = now
    }

    mutating func enterBackground(now: Double) {
        guard let session, session.isInFront else { return }
        self.session?.end = now
        self.session?.isInFront = false
    }

    /// Begins a session because the app asked for one. A session that has not timed out continues.
    mutating func start(now: Double, timeout: TimeInterval, closesEarlier: Bool) -> Change {
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

    /// The app ended the session explicitly.
    mutating func end(now: Double) -> Change {
        Change(ended: end(at: now))
    }

    private mutating func end(at instant: Double) -> (at: Double, duration: Double)? {
        guard let session else { return nil }
        self.session = nil
        return (instant, max(0, instant - session.start))
    }
}

/// When a token for push notifications is told to the server.
public enum PushTokenFrequency: String, Sendable, CaseIterable {
    /// When it is another one than the last time. The default.
    case onTokenChange = "ON_TOKEN_CHANGE"
    /// At each start of the app.
    case everyLaunch = "EVERY_LAUNCH"
    /// Once a day.
    case daily = "DAILY"
}

/// The state of the device, in memory and in a file that is written on the storage thread.
final class BloomreachDeviceRecord: Sendable {
    private let state: Lock<BloomreachDeviceState>
    private let path: String
    private let storage: Storage
    private let log: CountersignLog?

    init(directory: URL, storage: Storage, log: CountersignLog?) {
        path = directory.appendingPathComponent("device.json").path
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

    /// Its file is to be removed by the caller.
    func forget() { state.withLock { $0 = BloomreachDeviceState() } }

    private func save() {
        storage.submit { _ in
            do {
                try DurableFile.write(try JSONEncoder().encode(self.current), to: self.path)
            } catch {
                self.log?(.warning, "device state could not be stored", ["error": "\(error)"])
            }
        }
    }
}
