// The request and response types of `ScriptedTransport`.
@_exported public import CountersignTransport
