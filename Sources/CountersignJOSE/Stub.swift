// Stand-in until the real types land: whoever lands them deletes this file.
public import CountersignCore

public struct JWSAlgorithm: RawRepresentable, Hashable, Sendable {
    public let rawValue: String; public init(rawValue: String) { self.rawValue = rawValue };
    public static let rs256 = JWSAlgorithm(rawValue: "RS256")
}
public struct ClaimsPolicy: Sendable, Hashable {
    public init() {}; public var algorithms: [JWSAlgorithm] = [.rs256]; public var leeway = 30.0;
    public var maximumLifetime: Double?; public var audience: String?; public var issuer: String?;
    public var requiresAudience = false; public var requiresIssuer = false; public var requiresType = false
}
public struct KeyError: Error { public var reason: String }
public final class PublicKey: Sendable {
    public init(text: String) throws(KeyError) {}; public var thumbprint: String { "" };
    public var pem: String { "" }
}
public struct SigningKey: Sendable {
    public static func generate(_ a: JWSAlgorithm) throws -> SigningKey { SigningKey() };
    public var publicKey: PublicKey { get throws { try PublicKey(text: "") } };
    public func sign(claims: [String: JSONValue]) throws -> String { "" }
}
public struct KeyRing: Sendable {
    public struct Entry: Sendable { public init(id: String, text: String) {} };
    public init(entries: [Entry]) {}
}
public struct VerificationReport: Sendable {
    public struct Fault: Sendable { public var code: AuthErrorCode }; public var faults: [Fault];
    public var code: AuthErrorCode?; public var isAccepted: Bool; public var clockSkewSeconds: Double?
}
public struct TokenVerifier: Sendable {
    public init(keys: KeyRing, policy: ClaimsPolicy) {};
    public func verify(
        _ t: String?, userID: String?, payloadUserIDs: [String], at: Double, deviceTime: Double?
    ) -> VerificationReport {
        VerificationReport(faults: [], code: nil, isAccepted: true, clockSkewSeconds: nil)
    }
}
