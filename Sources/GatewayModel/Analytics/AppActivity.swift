/// What an app had to do lately, for the list of apps.
package struct AppActivity: Sendable, Equatable {
    /// Milliseconds since 1970 of the minute of its last request; nil when there was none.
    package var lastMilliseconds: Int64?
    package var requests = 0
    /// Of the requests, those that were refused.
    package var rejected = 0
    /// Of the requests, those that were let pass with a warning.
    package var warned = 0

    package init(lastMilliseconds: Int64? = nil, requests: Int = 0, rejected: Int = 0, warned: Int = 0) {
        self.lastMilliseconds = lastMilliseconds
        self.requests = requests
        self.rejected = rejected
        self.warned = warned
    }
}
