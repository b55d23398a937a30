internal import Foundation

extension SignedToken {
    /// Whether a customer token names all of these ids, the cookie aside (its `sub` claim, an object); nil if that cannot be
    /// read.
    ///
    /// The signature is not checked: use it only to say what is wrong with a token that a server has refused.
    func vouches(for customerIDs: [String: String]) -> Bool? {
        struct Claims: Decodable { let sub: [String: String] }
        guard let claims, let named = try? JSONDecoder().decode(Claims.self, from: claims).sub else {
            return nil
        }
        return customerIDs.allSatisfy { name, value in
            name == BloomreachCustomer.cookieName
                || named[name].map { $0.utf8.elementsEqual(value.utf8) } == true
        }
    }
}
