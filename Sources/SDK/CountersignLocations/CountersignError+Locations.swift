/// Error codes for locations.
extension CountersignError.Code {
    /// The coordinates are missing or invalid. The record is not stored.
    public static let invalidLocation = CountersignError.Code(rawValue: "invalid_location")
    /// There is no `http` or `https` URL to send to. Set one.
    public static let invalidURL = CountersignError.Code(rawValue: "invalid_url")
    /// The server could not be reached. The records are sent later.
    public static let networkConnection = CountersignError.Code(rawValue: "network_connection")
    /// Another client that shares the records, usually in another process, is sending them.
    public static let syncInProgress = CountersignError.Code(rawValue: "sync_in_progress")
    /// The server rejected the records, or they were not sent for another reason. They stay, or are in quarantine.
    public static let response = CountersignError.Code(rawValue: "response")
    /// The server replied with a redirect, which is not followed. Set the URL that it names.
    public static let redirect = CountersignError.Code(rawValue: "redirect")
    /// Nothing is stored, because `maxRecordsToPersist` is 0.
    public static let notPersisted = CountersignError.Code(rawValue: "not_persisted")
    /// There is no usable access token; `AuthorizationState` has the reason.
    public static let notAuthorized = CountersignError.Code(rawValue: "not_authorized")
}
