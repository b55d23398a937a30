import CountersignGateway
import Testing

@testable import GatewayIngest

/// Limits on the cost of parsing a token request.
struct OAuthFormTests {
    @Test func aScopeOfTooManyWordsIsNotParsed() {
        let words = { Array(repeating: TokenScope.all, count: $0).joined(separator: " ") }
        #expect(TokenScope.contains(TokenScope.all, words(10)))
        #expect(!TokenScope.contains(TokenScope.all, words(1_000)))
    }

    @Test func formNamesBeyondASCIIAreIgnored() throws {
        let form = try OAuthForm(body: Array("%CC%81=1&%CC%81=2&grant_type=refresh_token".utf8))
        #expect(form["grant_type"] == "refresh_token")
    }
}
