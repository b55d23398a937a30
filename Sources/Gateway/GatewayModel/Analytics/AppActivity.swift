/// Recent requests of an app, for the list of apps.
package struct AppActivity: Sendable, Equatable {
    /// The start of the minute of the last request, in milliseconds since 1970; nil without requests.
    package var lastMilliseconds: Int64?
    package var requests = 0
    /// Requests whose token was checked. `rejected` and `warned` count those whose token was missing or invalid.
    package var verified = 0
    package var rejected = 0
    package var warned = 0

    /// The last hours, oldest first; empty when nothing was counted.
    package var hours: [Hour] = []

    package struct Hour: Sendable, Equatable {
        package var requests = 0
        package var failures = 0

        package init() {}
    }

    package init() {}
}
