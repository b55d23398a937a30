import CountersignCore

@testable import CountersignJOSE

/// Key pairs that are made once for all tests.
enum TestKeys {
    static let rsa = make(.rs256)
    static let otherRSA = make(.rs256)
    /// `otherRSA` for another algorithm, because generating a key pair is slow.
    static let pss = make(.ps256, of: otherRSA)
    static let ec = make(.es256)
    static let otherEC = make(.es256)
    static let ed = make(.edDSA)

    static func of(_ algorithm: JWSAlgorithm) -> SigningKey {
        switch algorithm {
        case .ps256: pss
        case .es256: ec
        case .edDSA, .ed25519: ed
        default: rsa
        }
    }

    private static func make(_ algorithm: JWSAlgorithm, of key: SigningKey? = nil) -> SigningKey {
        do {
            if let key { return try SigningKey(pem: key.privatePEM, algorithm: algorithm) }
            return try SigningKey.generate(algorithm)
        } catch {
            fatalError("\(error)")
        }
    }
}

extension PublicKey {
    var point: [UInt8]? { if case .p256(let point) = material { point } else { nil } }
    var edwardsKey: [UInt8]? { if case .ed25519(let key) = material { key } else { nil } }
    var rsaNumbers: (modulus: [UInt8], exponent: [UInt8])? {
        if case .rsa(let modulus, let exponent) = material { (modulus, exponent) } else { nil }
    }
}

extension KeyRing {
    /// The public keys of these pairs, each with its index as id.
    init(_ keys: [SigningKey]) {
        self.init(entries: keys.enumerated().map { Entry(id: "\($0.offset)", key: $0.element.publicKey) })
    }
}

/// A token and its verifier. Both are valid unless a test changes a member.
struct Case {
    static let now = 1_800_000_000.0

    var header = #"{"alg":"RS256","typ":"JWT"}"#
    var claims = #"{"sub":"user-1","exp":1800000600,"iat":1799999990}"#
    var signer = TestKeys.rsa
    var keys = [KeyRing.Entry(id: "first", key: TestKeys.rsa.publicKey)]
    var policy = ClaimsPolicy()
    var user: String? = "user-1"
    var payloadUsers: [String] = []
    var now = Case.now

    var token: String {
        get throws { try signer.sign(header: Array(header.utf8), payload: Array(claims.utf8)) }
    }

    func report() throws -> VerificationReport { try report(of: token) }

    func report(of token: String?, deviceTime: Double? = nil) -> VerificationReport {
        TokenVerifier(keys: KeyRing(entries: keys), policy: policy).verify(
            token, userID: user, payloadUserIDs: payloadUsers, at: now, deviceTime: deviceTime)
    }

    /// The codes of all faults, in order.
    func codes() throws -> [Int] { try report().faults.map(\.code.rawValue) }
}
