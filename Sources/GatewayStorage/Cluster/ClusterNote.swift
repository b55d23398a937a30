internal import CountersignCore

/// Something small that gateways agree on.
package enum ClusterNote {
    package enum Kind: String, Sendable, TextEnum {
        /// Wrong passwords, by name and place.
        case signInAttempts = "sign_in_attempts"
        /// Where a name has signed in.
        case signInPlaces = "sign_in_places"
        /// Answers to requests under an `Idempotency-Key`.
        case answers

        /// How long a note is kept after its last change.
        package var keptMilliseconds: Int64 {
            switch self {
            // The longest block is an hour.
            case .signInAttempts: 2 * 3_600_000
            case .signInPlaces: 90 * 86_400_000
            case .answers: 86_400_000
            }
        }

        /// True for what nobody may read who can read the database.
        package var isSealed: Bool { self == .answers }
    }

    package struct Name: Hashable, Sendable {
        package let kind: Kind
        package let text: String

        package init(_ kind: Kind, _ text: String) {
            self.kind = kind
            self.text = text
        }
    }
}
