internal import Countersign
internal import CountersignCore
public import Foundation

extension Braze {
    /// What is known of the current user.
    ///
    /// Each call is kept on disk and sent like an event, under the user who is current at that moment.
    public final class User: Sendable {
        /// The user's gender, as one letter on the wire.
        public enum Gender: String, Sendable, CaseIterable {
            /// `m`.
            case male = "m"
            /// `f`.
            case female = "f"
            /// `o`.
            case other = "o"
            /// `u`.
            case unknown = "u"
            /// `n`.
            case notApplicable = "n"
            /// `p`.
            case preferNotToSay = "p"
        }

        /// Whether the user wants to hear of the app.
        public enum SubscriptionState: String, Sendable, CaseIterable {
            /// Said so.
            case optedIn = "opted_in"
            /// Did not object.
            case subscribed
            /// Objected.
            case unsubscribed
        }

        private let client: CountersignClient?

        init(client: CountersignClient?) {
            self.client = client
        }

        /// The current user's id; nil if nobody was named.
        public var id: String? { client?.userID }

        /// As `id`.
        ///
        /// - Returns: The id.
        public func id() async -> String? { id }

        /// As `id`, for code that was written before there was `async`.
        ///
        /// - Parameters:
        ///   - queue: Where the closure is called.
        ///   - completion: Takes the id.
        public func id(queue: DispatchQueue = .main, completion: @escaping @Sendable (String?) -> Void) {
            let id = id
            queue.async { completion(id) }
        }

        /// Sets the given name; nil empties it.
        ///
        /// - Parameter firstName: The name.
        public func set(firstName: String?) { set("first_name", firstName) }

        /// Sets the family name; nil empties it.
        ///
        /// - Parameter lastName: The name.
        public func set(lastName: String?) { set("last_name", lastName) }

        /// Sets the address for mail; nil empties it.
        ///
        /// - Parameter email: The address.
        public func set(email: String?) { set("email", email) }

        /// Sets the telephone number; nil empties it.
        ///
        /// - Parameter phoneNumber: The number.
        public func set(phoneNumber: String?) { set("phone", phoneNumber) }

        /// Sets the country; nil empties it.
        ///
        /// - Parameter country: Its code of ISO 3166-1, two letters.
        public func set(country: String?) { set("country", country) }

        /// Sets the language; nil empties it.
        ///
        /// - Parameter language: Its code of ISO 639-1, two letters.
        public func set(language: String?) { set("language", language) }

        /// Sets where the user lives; nil empties it.
        ///
        /// - Parameter homeCity: The town.
        public func set(homeCity: String?) { set("home_city", homeCity) }

        /// Sets the gender; nil empties it.
        ///
        /// - Parameter gender: The gender.
        public func set(gender: Gender?) { set("gender", gender?.rawValue) }

        /// Sets the day of birth; nil empties it.
        ///
        /// - Parameter dateOfBirth: Any instant of that day in the device's calendar.
        public func set(dateOfBirth: Date?) {
            set(
                "dob",
                dateOfBirth.map { date in
                    let day = Calendar(identifier: .gregorian).dateComponents(
                        [.year, .month, .day], from: date)
                    func digits(_ number: Int?, _ count: Int) -> String {
                        let text = "\(number ?? 0)"
                        return String(repeating: "0", count: max(0, count - text.count)) + text
                    }
                    return "\(digits(day.year, 4))-\(digits(day.month, 2))-\(digits(day.day, 2))"
                })
        }

        /// Says whether the user wants mail.
        ///
        /// - Parameter emailSubscriptionState: What the user said.
        public func set(emailSubscriptionState: SubscriptionState) {
            set("email_subscribe", emailSubscriptionState.rawValue)
        }

        /// Says whether the user wants push notifications.
        ///
        /// - Parameter pushNotificationSubscriptionState: What the user said.
        public func set(pushNotificationSubscriptionState: SubscriptionState) {
            set("push_subscribe", pushNotificationSubscriptionState.rawValue)
        }

        /// Sets an attribute of the app's own.
        ///
        /// - Parameters:
        ///   - key: Its name.
        ///   - value: Its value.
        public func setCustomAttribute(key: String, value: Bool) { custom(key, .bool(value)) }

        /// Sets an attribute of the app's own.
        ///
        /// - Parameters:
        ///   - key: Its name.
        ///   - value: Its value.
        public func setCustomAttribute(key: String, value: Int) { custom(key, .integer(Int64(value))) }

        /// Sets an attribute of the app's own.
        ///
        /// - Parameters:
        ///   - key: Its name.
        ///   - value: Its value.
        public func setCustomAttribute(key: String, value: Double) { custom(key, .number(value)) }

        /// Sets an attribute of the app's own.
        ///
        /// - Parameters:
        ///   - key: Its name.
        ///   - value: Its value.
        public func setCustomAttribute(key: String, value: String) { custom(key, .string(value)) }

        /// Sets an attribute of the app's own.
        ///
        /// - Parameters:
        ///   - key: Its name.
        ///   - value: An instant; it is sent as text (RFC 3339).
        public func setCustomAttribute(key: String, value: Date) { custom(key, JSONValue(any: value)) }

        /// Sets an attribute of the app's own; nil removes it.
        ///
        /// - Parameters:
        ///   - key: Its name.
        ///   - array: Its value.
        public func setCustomAttribute(key: String, array: [String]?) {
            custom(key, array.map { .array($0.map { .string($0) }) })
        }

        /// Sets an attribute of the app's own.
        ///
        /// - Parameters:
        ///   - key: Its name.
        ///   - array: Its value: strings, numbers, booleans, dates, and arrays and dictionaries of those.
        public func setCustomAttribute(key: String, array: [[String: Any?]]) {
            custom(key, .array(array.map(Self.object)))
        }

        /// Sets an attribute of the app's own.
        ///
        /// - Parameters:
        ///   - key: Its name.
        ///   - dictionary: Its value: strings, numbers, booleans, dates, and arrays and dictionaries of those.
        public func setCustomAttribute(key: String, dictionary: [String: Any?]) {
            custom(key, Self.object(dictionary))
        }

        /// Removes an attribute of the app's own.
        ///
        /// - Parameter key: Its name.
        public func unsetCustomAttribute(key: String) { custom(key, nil) }

        private static func object(_ values: [String: Any?]) -> JSONValue {
            .object(JSONObject(values.compactMapValues { $0.map { JSONValue(any: $0) } ?? .null }))
        }

        private func set(_ name: String, _ value: String?) {
            client?.record(attributes: [name: value.map { .string($0) } ?? .null])
        }

        private func custom(_ key: String, _ value: JSONValue?) {
            guard !key.isEmpty else { return }
            client?.record(attributes: ["custom": [key: value ?? .null]])
        }
    }
}

extension CountersignClient {
    fileprivate func record(attributes: JSONObject) {
        record(.userAttributes, payload: attributes)
    }
}
