internal import CountersignCore
internal import CountersignTransport
public import Foundation

extension BloomreachClient {
    // MARK: Sessions

    /// Begins a session and records `session_start`. Before a customer's first session, also records `installation`.
    /// A new session resumes sending of events that are paused after too many rejections of an API key.
    ///
    /// An open session continues unless it has timed out, which can happen only while the app is in the background or
    /// not running. With `BloomreachConfiguration.manualSessionAutoClose`, `session_end` is recorded for a session that
    /// has timed out. The time is when the app entered the background or, for a killed app, recorded its last event.
    public func startSession() {
        recordInstallation()
        let configuration = configuration
        let now = pipeline.clock.now.timeIntervalSince1970
        record(
            device.change {
                $0.start(
                    now: now, timeout: configuration.sessionTimeout,
                    closesEarlier: configuration.manualSessionAutoClose)
            })
    }

    /// Ends the session and records `session_end` with its `duration` in seconds. Does nothing without a session.
    public func endSession() {
        let now = pipeline.clock.now.timeIntervalSince1970
        record(device.change { $0.end(now: now) })
    }

    func sessionEvent(_ event: DeliveryPipeline.SessionEvent) {
        let now = pipeline.clock.now.timeIntervalSince1970
        switch event {
        case .appActive:
            recordInstallation()
            let timeout = configuration.sessionTimeout
            guard configuration.automaticSessionTracking else {
                return device.change { $0.resume(now: now, timeout: timeout) }
            }
            record(device.change { $0.start(now: now, timeout: timeout) })
        case .appInBackground:
            device.change { $0.enterBackground(now: now) }
        case .began, .ended: break  // The pipeline's sessions, which only resume sending and record no event.
        }
    }

    private func record(_ change: BloomreachDeviceState.Change) {
        if let ended = change.ended {
            let properties: JSONObject = ["duration": .number(ended.duration), "platform": platform]
            trackEvent("session_end", properties: properties, timestamp: ended.at, kind: .sessionEnd)
        }
        if let began = change.began {
            trackEvent(
                "session_start", properties: ["platform": platform], timestamp: began, kind: .sessionStart)
            pipeline.startSession()
        }
    }

    private func recordInstallation() {
        let cookie = customer.current.customer.cookie
        let isNew = device.change { device in
            defer { device.installedCookie = cookie }
            return device.installedCookie != cookie
        }
        if isNew { trackEvent("installation", properties: ["platform": platform], kind: .install) }
    }

    private var platform: JSONValue { .string(configuration.platform) }

    // MARK: Push notifications

    /// Sends the device's push token to the server, as the event `notification_state`, and stores it.
    ///
    /// `BloomreachConfiguration.pushTokenFrequency` sets when the same token is sent again. `anonymize` reports the
    /// token as invalid for the earlier customer and as valid for the new one.
    ///
    /// - Parameter token: The token in hexadecimal digits; nil or empty when the user has revoked the permission.
    public func trackPushToken(_ token: String?) {
        let token = token.flatMap { $0.isEmpty ? nil : $0 }
        let frequency = configuration.pushTokenFrequency
        let now = pipeline.clock.now.timeIntervalSince1970
        let (earlier, isDue) = device.change { device -> (String?, Bool) in
            let earlier = device.pushToken
            let isDue =
                switch (token, frequency) {
                case (nil, _): earlier != nil
                case (_, .everyLaunch): true
                // Compare in both directions: `toldAt` is in the future if the device clock was ahead then.
                case (_, .daily): earlier?.token != token || abs(now - (earlier?.toldAt ?? 0)) >= 86_400
                case (_, .onTokenChange): earlier?.token != token
                }
            if isDue { device.pushToken = token.map { .init(token: $0, toldAt: now) } }
            return (earlier?.token, isDue)
        }
        guard isDue else { return }
        if let token {
            recordPushToken(token, isValid: true, "Permission granted")
        } else if let earlier {
            recordPushToken(earlier, isValid: false, "Permission denied")
        }
    }

    /// As `trackPushToken(_:)`, for the token's bytes as Apple's systems return them.
    ///
    /// - Parameter token: The token's bytes.
    public func trackPushToken(_ token: Data) {
        trackPushToken(
            token.map { byte in
                let digits = String(byte, radix: 16)
                return byte < 16 ? "0" + digits : digits
            }.joined())
    }

    func recordPushToken(_ token: String, isValid: Bool, _ description: String) {
        var properties: JSONObject = [
            "push_notification_token": .string(token), "platform": .string(configuration.platform),
            "valid": .bool(isValid), "description": .string(description),
        ]
        properties["application_id"] = configuration.applicationID.map { .string($0) }
        trackPlainEvent("notification_state", properties: properties, kind: .pushToken)
    }
}
