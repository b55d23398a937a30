public let kSecAttrAccessGroup: CFString = ""
public var errSecDuplicateItem: OSStatus { 0 }
