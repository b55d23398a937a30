// Re-exports the request and response types of `ScriptedTransport`, so that one import is enough.
@_exported public import CountersignTransport
