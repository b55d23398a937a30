// swift-format-ignore-file
public import Foundation
public let kSecReturnData: CFString = ""
public let kSecValueData: CFString = ""
public let kSecAttrAccessible: CFString = ""
public let kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly: CFString = ""
public let kSecClass: CFString = ""
public let kSecClassGenericPassword: CFString = ""
public let kSecAttrService: CFString = ""
public let kSecAttrSynchronizable: CFString = ""
@available(macOS 10.15, iOS 13.0, *) public let kSecUseDataProtectionKeychain: CFString = ""
public let kSecAttrAccount: CFString = ""
public var errSecSuccess: OSStatus { 0 }
public var errSecItemNotFound: OSStatus { 0 }
@discardableResult public func SecItemCopyMatching(_ q: CFDictionary, _ r: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus { 0 }
@discardableResult public func SecItemUpdate(_ q: CFDictionary, _ r: CFDictionary) -> OSStatus { 0 }
@discardableResult public func SecItemAdd(_ q: CFDictionary, _ r: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus { 0 }
@discardableResult public func SecItemDelete(_ q: CFDictionary) -> OSStatus { 0 }
public let kSecAttrAccessGroup: CFString = ""
public var errSecDuplicateItem: OSStatus { 0 }
public let kSecMatchLimit: CFString = ""
public let kSecMatchLimitAll: CFString = ""
public let kSecReturnAttributes: CFString = ""
