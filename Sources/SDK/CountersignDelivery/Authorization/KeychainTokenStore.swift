#if canImport(Security)
    internal import Foundation
    internal import Security

    /// Tokens in the Keychain, readable after the first unlock. They never move to another device, even in a backup.
    public struct KeychainTokenStore: TokenStore {
        private let service: String
        private let accessGroup: String?

        /// Makes a store.
        ///
        /// - Parameters:
        ///   - service: The service attribute of the Keychain items, different for each client.
        ///   - accessGroup: One of the app's Keychain access groups, with its prefix, to share tokens with
        ///     extensions. All members can read and refresh the tokens. Nil stores in the first group and searches all.
        public init(service: String, accessGroup: String? = nil) {
            self.service = service
            self.accessGroup = accessGroup
        }

        // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
        public func token(for userID: String) throws -> String? {
            var query = item(userID)
            query[kSecReturnData as String] = true
            var result: CFTypeRef?
            let status = SecItemCopyMatching(query as CFDictionary, &result)
            if status == errSecItemNotFound { return nil }
            try check(status)
            return (result as? Data).map { String(decoding: $0, as: UTF8.self) }
        }

        // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
        public func store(_ token: String, for userID: String) throws {
            let values: [String: Any] = [
                kSecValueData as String: Data(token.utf8),
                kSecAttrAccessible as String: kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly,
            ]
            func update() -> OSStatus { SecItemUpdate(item(userID) as CFDictionary, values as CFDictionary) }
            var status = update()
            if status == errSecItemNotFound {
                status = SecItemAdd(item(userID).merging(values) { _, new in new } as CFDictionary, nil)
            }
            // Another process may have added the item meanwhile.
            if status == errSecDuplicateItem { status = update() }
            try check(status)
        }

        // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
        public func removeToken(for userID: String) throws {
            try remove(item(userID))
        }

        // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
        public func removeAll() throws {
            try remove(item(nil))
        }

        private func remove(_ item: [String: Any]) throws {
            let status = SecItemDelete(item as CFDictionary)
            if status != errSecItemNotFound { try check(status) }
        }

        private func item(_ userID: String?) -> [String: Any] {
            var query: [String: Any] = [
                kSecClass as String: kSecClassGenericPassword, kSecAttrService as String: service,
                kSecAttrSynchronizable as String: false, kSecUseDataProtectionKeychain as String: true,
            ]
            if let accessGroup { query[kSecAttrAccessGroup as String] = accessGroup }
            // Hexadecimal, so that the Keychain compares bytes and not Unicode forms.
            if let userID {
                query[kSecAttrAccount as String] = userID.utf8.map { String($0, radix: 16) }.joined(
                    separator: ".")
            }
            return query
        }

        private func check(_ status: OSStatus) throws {
            guard status == errSecSuccess else { throw KeychainError(status: status) }
        }
    }
#endif
