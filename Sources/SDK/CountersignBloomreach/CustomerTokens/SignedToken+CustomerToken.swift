internal import Foundation

extension SignedToken {
    /// Whether the `sub` claim, an object, has all of these IDs except the cookie; nil if unreadable. Does not verify
    /// the signature: use it only to explain why a server has rejected a token.
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
