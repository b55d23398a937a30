// Re-exports Foundation too, as ExponeaSDK does, so that one import is enough.
@_exported public import CountersignBloomreach
@_exported public import Foundation
