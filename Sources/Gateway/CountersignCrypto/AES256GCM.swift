internal import COpenSSL

/// AES-256 in Galois/Counter Mode (NIST SP 800-38D), which protects confidentiality and integrity.
package enum AES256GCM {
    package static let keyBytes = 32
    private static let nonceBytes = 12
    private static let tagBytes = 16

    /// Returns a random nonce, the ciphertext and the tag. `context` is authenticated but not in the result, so a
    /// ciphertext that was copied to a row with another context cannot be decrypted.
    package static func seal(_ bytes: [UInt8], key: [UInt8], context: [UInt8]) -> [UInt8] {
        var nonce = [UInt8](repeating: 0, count: nonceBytes)
        precondition(
            key.count == keyBytes && RAND_bytes(&nonce, Int32(nonceBytes)) == 1, "OpenSSL has no random bytes"
        )
        var output = [UInt8](repeating: 0, count: bytes.count + tagBytes)
        let cipher = EVP_CIPHER_CTX_new()
        defer { EVP_CIPHER_CTX_free(cipher) }
        var count: Int32 = 0
        var tag = [UInt8](repeating: 0, count: tagBytes)
        let isDone =
            EVP_EncryptInit_ex(cipher, EVP_aes_256_gcm(), nil, key, nonce) == 1
            && EVP_EncryptUpdate(cipher, nil, &count, context, Int32(context.count)) == 1
            && EVP_EncryptUpdate(cipher, &output, &count, bytes, Int32(bytes.count)) == 1
            && EVP_EncryptFinal_ex(cipher, &tag, &count) == 1
            && EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_GET_TAG, Int32(tagBytes), &tag) == 1
        precondition(isDone, "OpenSSL has no AES-256-GCM")
        output.replaceSubrange(bytes.count..., with: tag)
        return nonce + output
    }

    /// Returns nil with another key or context, or if the data was changed.
    package static func open(_ sealed: [UInt8], key: [UInt8], context: [UInt8]) -> [UInt8]? {
        guard key.count == keyBytes, sealed.count >= nonceBytes + tagBytes else { return nil }
        let bytes = Array(sealed[nonceBytes..<(sealed.count - tagBytes)])
        var tag = Array(sealed.suffix(tagBytes))
        var output = [UInt8](repeating: 0, count: bytes.count + tagBytes)
        let cipher = EVP_CIPHER_CTX_new()
        defer { EVP_CIPHER_CTX_free(cipher) }
        var count: Int32 = 0
        let isOpen =
            EVP_DecryptInit_ex(cipher, EVP_aes_256_gcm(), nil, key, sealed) == 1
            && EVP_DecryptUpdate(cipher, nil, &count, context, Int32(context.count)) == 1
            && EVP_DecryptUpdate(cipher, &output, &count, bytes, Int32(bytes.count)) == 1
            && EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_SET_TAG, Int32(tagBytes), &tag) == 1
            && EVP_DecryptFinal_ex(cipher, &tag, &count) == 1
        guard isOpen else {
            ERR_clear_error()
            return nil
        }
        return Array(output.prefix(bytes.count))
    }
}
