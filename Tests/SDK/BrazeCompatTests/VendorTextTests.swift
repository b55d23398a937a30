import TestSupport
import Testing

/// The samples in `VendorSamples.swift` are those of Braze's page "SDK Authentication".
struct VendorTextTests {
    @Test func vendorSamplesEqualBrazesDocumentation() throws {
        #expect(try sourceChecksum("VendorSamples.swift") == "1653a96d7a255a25")
    }
}
