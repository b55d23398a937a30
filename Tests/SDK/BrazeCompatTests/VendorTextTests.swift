import TestSupport
import Testing

/// Detects changes of `VendorSamples.swift`, which was compared with Braze's page "SDK Authentication".
struct VendorTextTests {
    @Test func vendorSamplesAreUnchanged() throws {
        #expect(try sourceChecksum("VendorSamples.swift") == "1653a96d7a255a25")
    }
}
