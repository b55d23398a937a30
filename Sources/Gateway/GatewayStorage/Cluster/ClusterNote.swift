internal import CountersignCore

/// A small value that the gateways of a cluster share.
package enum ClusterNote {
    package enum Kind: String, Sendable, TextEnum {
        /// Failed sign-ins, by user name and network.
        case signInAttempts = "sign_in_attempts"
        /// The networks that a user has signed in from.
        case signInPlaces = "sign_in_places"
        /// Responses to requests with an `Idempotency-Key`.
        case answers

        /// How long a note is stored after its last change.
        package var keptMilliseconds: Int64 {
            switch self {
            // The longest block of sign-ins lasts an hour.
            case .signInAttempts: 2 * 3_600_000
            case .signInPlaces: 90 * 86_400_000
            case .answers: 86_400_000
            }
        }

        /// Whether the note is encrypted in the database.
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
