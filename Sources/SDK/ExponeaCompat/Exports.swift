// One import is enough, as it is for ExponeaSDK, whose module brings Foundation along.
@_exported public import CountersignBloomreach
@_exported public import Foundation
