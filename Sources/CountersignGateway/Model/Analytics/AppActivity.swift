/// What an app had to do lately, for the list of apps.
package struct AppActivity: Sendable, Equatable {
    /// Milliseconds since 1970 of the minute of its last request; nil when there was none.
    var lastMilliseconds: Int64?
    var requests = 0
    /// Of the requests, those that were refused.
    var rejected = 0
    /// Of the requests, those that were let pass with a warning.
    var warned = 0
}
