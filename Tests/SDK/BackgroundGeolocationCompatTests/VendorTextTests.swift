import TestSupport
import Testing

/// Detects changes of `VendorSamples.swift`, which was compared with Transistorsoft's page "AuthorizationConfig".
struct VendorTextTests {
    @Test func vendorSamplesAreUnchanged() throws {
        #expect(try sourceChecksum("VendorSamples.swift") == "952fb9cbfc434a95")
    }
}
