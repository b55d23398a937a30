internal import Countersign
internal import CountersignCore
public import Foundation

extension Braze {
    /// The attributes of the current user. Each call is stored and sent like an event of that user.
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

        /// The state of a subscription to messages.
        public enum SubscriptionState: String, Sendable, CaseIterable {
            /// The user agreed explicitly.
            case optedIn = "opted_in"
            /// The user did not object.
            case subscribed
            /// The user objected.
            case unsubscribed
        }

        private let client: CountersignClient?

        init(client: CountersignClient?) {
            self.client = client
        }

        /// The current user's ID; nil without a user.
        public var id: String? { client?.userID }

        /// As `id`.
        ///
        /// - Returns: The id.
        public func id() async -> String? { id }

        /// As `id`, with a completion handler.
        ///
        /// - Parameters:
        ///   - queue: The queue on which the closure is called.
        ///   - completion: Receives the ID.
        public func id(queue: DispatchQueue = .main, completion: @escaping @Sendable (String?) -> Void) {
            let id = id
            queue.async { completion(id) }
        }

        /// Sets the given name; nil clears it.
        ///
        /// - Parameter firstName: The name.
        public func set(firstName: String?) { set("first_name", firstName) }

        /// Sets the family name; nil clears it.
        ///
        /// - Parameter lastName: The name.
        public func set(lastName: String?) { set("last_name", lastName) }

        /// Sets the e-mail address; nil clears it.
        ///
        /// - Parameter email: The address.
        public func set(email: String?) { set("email", email) }

        /// Sets the telephone number; nil clears it.
        ///
        /// - Parameter phoneNumber: The number.
        public func set(phoneNumber: String?) { set("phone", phoneNumber) }

        /// Sets the country; nil clears it.
        ///
        /// - Parameter country: The two-letter code (ISO 3166-1).
        public func set(country: String?) { set("country", country) }

        /// Sets the language; nil clears it.
        ///
        /// - Parameter language: The two-letter code (ISO 639-1).
        public func set(language: String?) { set("language", language) }

        /// Sets the home city; nil clears it.
        ///
        /// - Parameter homeCity: The city.
        public func set(homeCity: String?) { set("home_city", homeCity) }

        /// Sets the gender; nil clears it.
        ///
        /// - Parameter gender: The gender.
        public func set(gender: Gender?) { set("gender", gender?.rawValue) }

        /// Sets the day of birth; nil clears it.
        ///
        /// - Parameter dateOfBirth: Any instant of that day in the device's time zone.
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

        /// Sets the subscription to e-mail.
        ///
        /// - Parameter emailSubscriptionState: The state.
        public func set(emailSubscriptionState: SubscriptionState) {
            set("email_subscribe", emailSubscriptionState.rawValue)
        }

        /// Sets the subscription to push notifications.
        ///
        /// - Parameter pushNotificationSubscriptionState: The state.
        public func set(pushNotificationSubscriptionState: SubscriptionState) {
            set("push_subscribe", pushNotificationSubscriptionState.rawValue)
        }

        /// Sets a custom attribute.
        ///
        /// - Parameters:
        ///   - key: The attribute's name.
        ///   - value: The value.
        public func setCustomAttribute(key: String, value: Bool) { custom(key, .bool(value)) }

        /// Sets a custom attribute.
        ///
        /// - Parameters:
        ///   - key: The attribute's name.
        ///   - value: The value.
        public func setCustomAttribute(key: String, value: Int) { custom(key, .integer(Int64(value))) }

        /// Sets a custom attribute.
        ///
        /// - Parameters:
        ///   - key: The attribute's name.
        ///   - value: The value.
        public func setCustomAttribute(key: String, value: Double) { custom(key, .number(value)) }

        /// Sets a custom attribute.
        ///
        /// - Parameters:
        ///   - key: The attribute's name.
        ///   - value: The value.
        public func setCustomAttribute(key: String, value: String) { custom(key, .string(value)) }

        /// Sets a custom attribute.
        ///
        /// - Parameters:
        ///   - key: The attribute's name.
        ///   - value: The value, sent as RFC 3339 text.
        public func setCustomAttribute(key: String, value: Date) { custom(key, JSONValue(any: value)) }

        /// Sets a custom attribute; nil removes it.
        ///
        /// - Parameters:
        ///   - key: The attribute's name.
        ///   - array: The value.
        public func setCustomAttribute(key: String, array: [String]?) {
            custom(key, array.map { .array($0.map { .string($0) }) })
        }

        /// Sets a custom attribute.
        ///
        /// - Parameters:
        ///   - key: The attribute's name.
        ///   - array: The value: strings, numbers, booleans, dates, and arrays and dictionaries of these.
        public func setCustomAttribute(key: String, array: [[String: Any?]]) {
            custom(key, .array(array.map(Self.object)))
        }

        /// Sets a custom attribute.
        ///
        /// - Parameters:
        ///   - key: The attribute's name.
        ///   - dictionary: The value: strings, numbers, booleans, dates, and arrays and dictionaries of these.
        public func setCustomAttribute(key: String, dictionary: [String: Any?]) {
            custom(key, Self.object(dictionary))
        }

        /// Removes a custom attribute.
        ///
        /// - Parameter key: The attribute's name.
        public func unsetCustomAttribute(key: String) { custom(key, nil) }

        private static func object(_ values: [String: Any?]) -> JSONValue {
            .object(JSONObject(values.compactMapValues { $0.map { JSONValue(any: $0) } ?? .null }))
        }

        private func set(_ name: String, _ value: String?) {
            client?.record(.userAttributes, payload: [name: value.map { .string($0) } ?? .null])
        }

        private func custom(_ key: String, _ value: JSONValue?) {
            guard !key.isEmpty else { return }
            client?.record(.userAttributes, payload: ["custom": [key: value ?? .null]])
        }
    }
}
