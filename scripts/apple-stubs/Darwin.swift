public let EPERM: Int32 = 1
