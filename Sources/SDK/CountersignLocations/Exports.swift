// What an app says to a `LocationClient` is in part the SDK's: one import is enough.
@_exported public import Countersign
