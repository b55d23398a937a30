public let kSecAttrAccessGroup: CFString = ""
