/// What an app had to do lately, for the list of apps.
package struct AppActivity: Sendable, Equatable {
    /// Milliseconds since 1970 of the minute of its last request; nil when there was none.
    package var lastMilliseconds: Int64?
    package var requests = 0
    /// Of the requests, those that were refused.
    package var rejected = 0
    /// Of the requests, those that were let pass with a warning.
    package var warned = 0

    /// The same hour by hour, oldest first; empty when nothing was counted.
    package var hours: [Hour] = []

    /// One hour of it.
    package struct Hour: Sendable, Equatable {
        package var requests = 0
        /// Those that were refused or let pass with a warning.
        package var failures = 0

        package init() {}
    }

    package init() {}
}
