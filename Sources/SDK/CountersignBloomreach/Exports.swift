// The values that every client shares, such as `FlushPolicy`: one import is enough.
@_exported public import CountersignCore
@_exported public import CountersignDelivery
