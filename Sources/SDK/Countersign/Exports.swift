// `JSONValue`, `EventKind` and `AuthErrorCode` are part of this module's API: one import is enough for an app.
@_exported public import CountersignCore
