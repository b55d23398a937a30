import CountersignGatewayTesting
import Foundation

/// How shipped Bloomreach clients decode responses (iOS SDK 2.28 to 4.0, Android SDK 4.10).
enum ShippedClient {
    /// The outcome of a response in an iOS client.
    enum Outcome: Equatable {
        /// The event is deleted from the queue.
        case success
        /// One attempt is used up; the text is shown to the developer.
        case missingData(String)
        /// One attempt is used up; the error is shown if it can be decoded.
        case notAuthorized(String?)
        case notFound(String?)
        /// The event stays in the queue, unless the errors can be decoded.
        case serverError(String?)
        /// The cache is emptied and the request repeated without a token.
        case gone(String)
    }

    struct SimpleError: Decodable {
        let error: String
        let success: Bool
    }

    struct MultipleErrors: Decodable {
        struct Entry: Decodable {
            let code: Int
            let description: String
            let message: String
        }

        let errors: [Entry]
        let success: Bool
    }

    static func outcome(_ answer: TestAnswer) -> Outcome {
        let body = Data(answer.body.utf8)
        func multiple() -> String? {
            (try? JSONDecoder().decode(MultipleErrors.self, from: body))?.errors.first?.message
        }
        switch answer.status {
        case 400, 405...409, 411...499: return .missingData(answer.body)
        case 401: return .notAuthorized((try? JSONDecoder().decode(SimpleError.self, from: body))?.error)
        case 404: return .notFound(multiple())
        case 410: return .gone(answer.body)
        case 500...: return .serverError(multiple())
        default: return .success
        }
    }

    /// In-app messages, with the members that iOS clients from 3.2.0 on require.
    struct InAppMessages: Decodable {
        struct Message: Decodable {
            struct Trigger: Decodable {
                struct Filter: Decodable {
                    struct Attribute: Decodable {
                        let type: String
                        let property: String?
                    }
                    struct Constraint: Decodable {
                        let type: String
                        let `operator`: String
                    }
                    let attribute: Attribute
                    let constraint: Constraint
                }
                let event_type: String
                let filter: [Filter]
            }
            struct DateFilter: Decodable {
                let enabled: Bool
                let from_date: Double?
                let to_date: Double?
            }
            let id: String
            let name: String
            let message_type: String?
            let frequency: String
            let is_html: Bool
            let is_rich_text: Bool
            let payload_html: String?
            let variant_id: Int
            let variant_name: String
            let trigger: Trigger
            let date_filter: DateFilter
            let load_delay: Int?
        }
        let success: Bool
        let data: [Message]?
    }

    struct Consents: Decodable {
        struct Sources: Decodable {
            let crm: Bool
            let `import`: Bool
            let page: Bool
            let private_api: Bool
            let public_api: Bool
            let scenario: Bool
        }
        struct Translation: Decodable {
            let name: String?
            let description: String?
        }
        struct Category: Decodable {
            let id: String
            let legitimate_interest: Bool
            let sources: Sources
            let translations: [String: Translation?]
        }
        let results: [Category]
        let success: Bool
    }

    struct Inbox: Decodable {
        struct Message: Decodable {
            struct Content: Decodable {
                let title: String?
                let message: String?
            }
            let id: String
            let type: String
            let is_read: Bool
            let create_time: Double
            let expire_time: Double?
            let content: Content?
        }
        let success: Bool
        let messages: [Message]?
        let sync_token: String?
    }

    static func decode<Value: Decodable>(
        _ type: Value.Type, _ answer: TestAnswer?
    ) throws -> Value {
        try JSONDecoder().decode(type, from: Data((answer?.body ?? "").utf8))
    }
}
