internal import COpenSSL

/// Checks that 32 bytes are a point on the curve (RFC 8032, section 5.1.3) without a small order. OpenSSL accepts any
/// 32 bytes, and signatures of a key with a small order can be forged.
package enum Ed25519Point {
    package static func isUsable(_ bytes: [UInt8]) -> Bool {
        guard bytes.count == 32 else { return false }
        var bigEndian = Array(bytes.reversed())
        bigEndian[0] &= 0x7F
        guard let context = BN_CTX_new() else { preconditionFailure("out of memory") }
        defer { BN_CTX_free(context) }
        BN_CTX_start(context)
        defer { BN_CTX_end(context) }
        guard let y = BN_CTX_get(context), let prime = BN_CTX_get(context), let square = BN_CTX_get(context),
            let numerator = BN_CTX_get(context), let denominator = BN_CTX_get(context),
            let exponent = BN_CTX_get(context), let d = BN_CTX_get(context), let x2 = BN_CTX_get(context)
        else { preconditionFailure("out of memory") }
        BN_bin2bn(bigEndian, 32, y)
        // p = 2^255 - 19
        BN_set_word(prime, 0)
        BN_set_bit(prime, 255)
        BN_sub_word(prime, 19)
        guard BN_cmp(y, prime) < 0 else { return false }
        // d = -121665 / 121666
        BN_set_word(d, 121_666)
        BN_mod_inverse(d, d, prime, context)
        BN_mul_word(d, 121_665)
        BN_mod_sub(d, prime, d, prime, context)
        // x^2 = (y^2 - 1) / (d y^2 + 1)
        BN_mod_sqr(square, y, prime, context)
        BN_copy(numerator, square)
        BN_mod_sub(numerator, numerator, BN_value_one(), prime, context)
        BN_mod_mul(denominator, d, square, prime, context)
        BN_mod_add(denominator, denominator, BN_value_one(), prime, context)
        BN_mod_inverse(denominator, denominator, prime, context)
        BN_mod_mul(x2, numerator, denominator, prime, context)
        // Rejects small orders: x = 0 (order 1 or 2), y = 0 (order 4), and points whose double has y = 0 (order 8).
        // By the doubling formula of RFC 8032, section 5.1.4, the double has y = 0 if y^2 = -x^2.
        if BN_is_zero(x2) == 1 || BN_is_zero(y) == 1 { return false }
        BN_mod_add(numerator, x2, square, prime, context)
        if BN_is_zero(numerator) == 1 { return false }
        // Euler's criterion: x^2 is a square if and only if (x^2)^((p-1)/2) = 1.
        BN_copy(exponent, prime)
        BN_rshift1(exponent, exponent)
        BN_mod_exp(x2, x2, exponent, prime, context)
        return BN_is_one(x2) == 1
    }
}
