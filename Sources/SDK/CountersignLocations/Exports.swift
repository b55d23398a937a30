// Re-exports the types that all clients share, such as `FlushPolicy`, so that one import is enough.
@_exported public import CountersignCore
@_exported public import CountersignDelivery
