import Foundation

@testable import CountersignJOSE
@testable import CountersignJSON

/// libFuzzer's entry point. The first byte selects the parser of the rest. The first two SUB bytes become runs of
/// combining marks.
@c(LLVMFuzzerTestOneInput)
public func fuzzOne(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    guard let data, count > 0 else { return 0 }
    let bytes = CombiningMarks.expanded(UnsafeBufferPointer(start: data + 1, count: count - 1))
    // Twice the time of the slowest target with ASAN. Normalizing one run of marks would take 4 s, above the bound of 1.1 s.
    let bound = 0.1 + 4e-6 * Double(bytes.count)
    // Measures slow inputs twice, because the first call may have generated a key or a table.
    guard spent(data[0], bytes) >= bound else { return 0 }
    let again = spent(data[0], bytes)
    guard again < bound else {
        fatalError("\(bytes.count) bytes took \(again) s of CPU, more than \(bound) s")
    }
    return 0
}

/// Seconds of CPU that one input takes.
private func spent(_ kind: UInt8, _ bytes: [UInt8]) -> Double {
    let began = cpuSeconds()
    bytes.withUnsafeBufferPointer { fuzz(kind, $0) }
    return cpuSeconds() - began
}

private func cpuSeconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

/// A run of combining marks with alternating classes, the slowest input for normalization.
private enum CombiningMarks {
    static let symbol: UInt8 = 0x1A
    static let run = Array(String(repeating: "\u{301}\u{316}", count: 60_000).utf8)

    /// Replaces the first two SUB bytes. More replacements would only slow down fuzzing.
    static func expanded(_ bytes: UnsafeBufferPointer<UInt8>) -> [UInt8] {
        var expanded: [UInt8] = []
        var runs = 0
        for byte in bytes {
            if byte == symbol, runs < 2 {
                runs += 1
                expanded += run
            } else {
                expanded.append(byte)
            }
        }
        return expanded
    }
}

private func fuzz(_ kind: UInt8, _ rest: UnsafeBufferPointer<UInt8>) {
    if kind & 8 != 0 { return fuzzGateway(kind & 0x17, Array(rest)) }
    switch kind & 7 {
    case 0: fuzzToken(rest)
    case 1: _ = try? PublicKey(text: String(decoding: rest, as: UTF8.self))
    case 2: _ = try? JWKSet(json: String(decoding: rest, as: UTF8.self))
    case 3: fuzzJSON(rest)
    case 4: fuzzSigned(rest)
    case 5: _ = try? PublicKey(pem: PEMBlock.write("PUBLIC KEY", Array(rest)))
    case 6: _ = try? PublicKey(pem: PEMBlock.write("CERTIFICATE", Array(rest)))
    default: _ = try? SigningKey(pem: PEMBlock.write("PRIVATE KEY", Array(rest)))
    }
}

private enum Fixture {
    static let now = 1_800_000_000.0
    static let signer = make(.edDSA)
    static let verifier = TokenVerifier(
        keys: KeyRing(
            entries: [signer, make(.es256), make(.rs256)].enumerated().map {
                KeyRing.Entry(id: "\($0.offset)", key: $0.element.publicKey)
            }), policy: ClaimsPolicy(algorithms: JWSAlgorithm.all),
        cache: VerifiedTokenCache(maximumBytes: 65_536))

    static func make(_ algorithm: JWSAlgorithm) -> SigningKey {
        guard let key = try? SigningKey.generate(algorithm) else { fatalError("no key") }
        return key
    }
}

/// Verifies the input as a token. No input is signed with these keys, so no token may be accepted.
private func fuzzToken(_ bytes: UnsafeBufferPointer<UInt8>) {
    let token = String(decoding: bytes, as: UTF8.self)
    let report = Fixture.verifier.verify(token, userID: "user-1", at: Fixture.now)
    precondition(!report.isAccepted && report.claims == nil && report.matchedKeyID == nil, "accepted")
    _ = try? CompactJWS(parsing: token)
}

/// Signs the input (header and payload, separated by a zero byte) and verifies it, twice to test the cache.
private func fuzzSigned(_ bytes: UnsafeBufferPointer<UInt8>) {
    let parts = bytes.split(separator: 0, maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2,
        let token = try? Fixture.signer.sign(header: Array(parts[0]), payload: Array(parts[1]))
    else { return }
    let first = Fixture.verifier.verify(token, userID: "user-1", at: Fixture.now)
    let again = Fixture.verifier.verify(token, userID: "user-1", at: Fixture.now)
    precondition(first.faults.map(\.code) == again.faults.map(\.code), "the cache changes the result")
    guard let claims = first.claims else { return }
    precondition(claims.subject == "user-1" && claims.expiresAt + 30 > Fixture.now, "accepted")
}

private func fuzzJSON(_ bytes: UnsafeBufferPointer<UInt8>) {
    let raw = UnsafeRawBufferPointer(bytes)
    let parser = StrictJSONParser(maximumBytes: 65_536, maximumDepth: 32)
    _ = try? parser.parse(raw) { root in
        walk(root)
        let canonical = root.canonicalBytes
        let again = try? StrictJSONParser(maximumBytes: 1 << 20, maximumDepth: 32).parse(bytes: canonical) {
            $0.canonicalBytes
        }
        precondition(again == canonical, "canonical JSON is not its own canonical JSON")
        let count = root.kind == .object ? Array(root.members).count : Array(root.elements).count
        let spans = StrictJSONParser.childSpans(
            of: raw, at: StrictJSONParser.rootOffset(of: raw), count: count)
        guard root.kind == .object || root.kind == .array else { return }
        precondition(spans.count == count, "spans and members differ")
        for span in spans { precondition(span.lowerBound < span.upperBound && span.upperBound <= raw.count) }
    }
}

private func walk(_ node: JSONNode) {
    _ = (node.string, node.double, node.int64, node.bool)
    for element in node.elements { walk(element) }
    for member in node.members { walk(member.value) }
}
