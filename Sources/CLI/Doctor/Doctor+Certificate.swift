internal import COpenSSL
internal import Foundation
internal import GatewayModel

extension Doctor {
    private static let warningDays = 30.0

    /// Empty if the gateway serves HTTP.
    var certificate: [Finding] {
        (configuration.tls?.all ?? []).map(certificate)
    }

    private func certificate(_ files: TLSFiles) -> Finding {
        func failed(_ detail: String, _ remedy: String) -> Finding {
            .failed("certificate", detail, remedy)
        }
        for path in [files.certificatePath, files.keyPath] {
            let error = obstacle(path, R_OK)
            if error != 0 {
                return failed(
                    "cannot read \(path): \(String(cString: strerror(error)))",
                    "give the gateway's account the right to read it, or correct tls-certificate and tls-key")
            }
        }
        defer { ERR_clear_error() }
        guard let certificate = Self.read(files.certificatePath, { PEM_read_bio_X509($0, nil, nil, nil) })
        else {
            return failed(
                "\(files.certificatePath) holds no certificate",
                "tls-certificate takes a PEM file with its chain"
            )
        }
        defer { X509_free(certificate) }
        // An empty password prevents a prompt by OpenSSL.
        let key = (files.keyPassword ?? "").withCString { password in
            Self.read(files.keyPath) {
                PEM_read_bio_PrivateKey($0, nil, nil, UnsafeMutableRawPointer(mutating: password))
            }
        }
        guard let key else {
            return failed(
                "\(files.keyPath) holds no private key that can be read",
                "tls-key takes a PEM file; an encrypted one needs tls-key-password")
        }
        defer { EVP_PKEY_free(key) }
        guard X509_check_private_key(certificate, key) == 1 else {
            return failed(
                "\(files.keyPath) is not the key of \(files.certificatePath)",
                "give both files of the same certificate")
        }
        guard let start = Self.date(X509_get0_notBefore(certificate)),
            let end = Self.date(X509_get0_notAfter(certificate))
        else { return failed("\(files.certificatePath) has no validity dates", "renew it") }
        return lifetime(of: files.certificatePath, from: start, to: end)
    }

    private func lifetime(of path: String, from start: Date, to end: Date) -> Finding {
        let now = now()
        let day = { (date: Date) in String(ISO8601DateFormatter().string(from: date).prefix(10)) }
        let name = "certificate"
        if start > now {
            return .failed(name, "\(path) becomes valid on \(day(start))", "is this machine's clock right?")
        }
        let days = end.timeIntervalSince(now) / 86_400
        if days <= 0 {
            return .failed(
                name, "\(path) ended on \(day(end))",
                "renew it; a running gateway picks up the new one automatically")
        }
        if days < Self.warningDays {
            return .warning(
                name, "\(path) ends on \(day(end)), in \(Int(days)) days",
                "renew it; a running gateway picks up the new one automatically")
        }
        return .ok(name, "\(path) is valid until \(day(end))")
    }

    private static func read<Object>(_ path: String, _ parse: (OpaquePointer) -> Object?) -> Object? {
        guard let data = FileManager.default.contents(atPath: path) else { return nil }
        return data.withUnsafeBytes { bytes in
            guard let file = BIO_new_mem_buf(bytes.baseAddress, Int32(clamping: bytes.count)) else {
                return nil
            }
            defer { BIO_free(file) }
            return parse(file)
        }
    }

    private static func date(_ time: UnsafePointer<ASN1_TIME>?) -> Date? {
        var parts = tm()
        guard let time, ASN1_TIME_to_tm(time, &parts) == 1 else { return nil }
        return Date(timeIntervalSince1970: Double(timegm(&parts)))
    }
}
