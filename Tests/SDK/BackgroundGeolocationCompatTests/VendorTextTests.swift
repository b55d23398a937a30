import Foundation
import Testing

/// Checks that the samples in `VendorSamples.swift` match Transistorsoft's page "AuthorizationConfig".
struct VendorTextTests {
    private static let blocks = [
        #"""
        let bgGeo = BGGeo.shared
        let token = "my-auth-token"
        let refreshToken = "my-refresh-token"
        // Listen for authorization refresh results
        let sub = bgGeo.onAuthorization { event in
        if event.isSuccess {
        print("[authorization] SUCCESS:", event.response)
        } else {
        print("[authorization] ERROR:", event.error ?? "")
        }
        }
        // Initialize with JWT authorization
        bgGeo.ready { config in
        config.http.url = "https://app.your.server.com/users/locations"
        config.http.autoSync = true
        config.authorization.strategy = "JWT"
        config.authorization.accessToken = token
        config.authorization.refreshToken = refreshToken
        config.authorization.refreshUrl = "https://auth.your.server.com/tokens"
        config.authorization.refreshPayload = [
        "the_refresh_token_field_name": "{refreshToken}"
        ]
        config.authorization.expires = -1
        }
        """#,
        #"""
        let bgGeo = BGGeo.shared
        bgGeo.onAuthorization { event in
        if event.isSuccess {
        print("[authorization] SUCCESS:", event.response)
        } else {
        print("[authorization] ERROR:", event.error ?? "")
        }
        }
        """#,
        #"""
        let bgGeo = BGGeo.shared
        bgGeo.ready { config in
        config.authorization.accessToken = "XXX.YYY.ZZZ"
        config.authorization.refreshUrl = "https://auth.domain.com/tokens"
        config.authorization.refreshToken = "smTsfaspfgaadsfgqZerUt0wueflasdfkaxjdfeKIacb"
        config.authorization.refreshPayload = [
        "my_refresh_token": "{refreshToken}",
        "grant_type": "refresh_token",
        "foo": "another arbitrary field"
        ]
        config.authorization.refreshHeaders = [:] // Empty dict to provide no refreshHeaders.
        }
        """#,
        #"""
        let bgGeo = BGGeo.shared
        bgGeo.ready { config in
        config.authorization.strategy = "JWT"
        config.authorization.accessToken = "XXX.YYY.ZZZ"
        config.authorization.refreshUrl = "https://auth.your.server.com/tokens"
        config.authorization.refreshToken = "smTsfaspfgaadsfgqZerUt0wueflasdfkaxjdfeKIacb"
        config.authorization.refreshPayload = [
        "my_refresh_token": "{refreshToken}",
        "grant_type": "refresh_token",
        "foo": "another arbitrary field"
        ]
        }
        """#,
    ]

    /// Only line breaks, indentation and trailing commas may differ, because the formatter decides those.
    private func tokens(_ code: String) -> String {
        code.filter { !$0.isWhitespace }.replacingOccurrences(of: ",]", with: "]")
    }

    @Test func vendorSamplesEqualTheVendorsDocumentation() throws {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent(
            "VendorSamples.swift")
        let text = tokens(try String(contentsOf: file, encoding: .utf8))
        for block in Self.blocks { #expect(text.contains(tokens(block)), "\(block)") }
    }
}
