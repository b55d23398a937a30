import TestSupport
import Testing

/// The samples in `VendorSamples.swift` are those of Transistorsoft's page "AuthorizationConfig".
struct VendorTextTests {
    @Test func vendorSamplesEqualTheVendorsDocumentation() throws {
        #expect(try sourceChecksum("VendorSamples.swift") == "952fb9cbfc434a95")
    }
}
