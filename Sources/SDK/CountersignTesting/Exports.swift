// What a `ScriptedTransport` takes and returns.
@_exported public import CountersignTransport
