internal import COpenSSL

/// The key and expiry of an X.509 certificate.
package struct X509Certificate {
    package let subjectPublicKeyInfo: [UInt8]
    /// The end of validity in seconds since 1970; nil if it cannot be represented.
    package let expiresAt: Double?

    /// Parses DER. Returns nil unless the bytes are exactly one certificate.
    package init?(_ bytes: [UInt8]) {
        var position: UnsafePointer<UInt8>?
        let (certificate, isWhole) = bytes.withUnsafeBufferPointer { buffer in
            position = buffer.baseAddress
            let certificate = d2i_X509(nil, &position, buffer.count)
            return (certificate, position == buffer.baseAddress.map { $0 + buffer.count })
        }
        guard let certificate else {
            ERR_clear_error()
            return nil
        }
        defer { X509_free(certificate) }
        guard isWhole else { return nil }
        subjectPublicKeyInfo = derBytes { i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), $0) }
        let epoch = ASN1_TIME_set(nil, 0)
        defer { ASN1_TIME_free(epoch) }
        var days: Int32 = 0
        var seconds: Int32 = 0
        let hasEnd =
            epoch != nil
            && ASN1_TIME_diff(&days, &seconds, epoch, X509_get0_notAfter(certificate)) == 1
        expiresAt = hasEnd ? Double(days) * 86_400 + Double(seconds) : nil
    }
}
