extension EnforcementPlan {
    /// Whether a user is among the `percent` percent chosen by a hash. A higher percentage only adds users.
    package static func isRamped(_ userID: String, of appID: String, percent: Int) -> Bool {
        if percent >= 100 { return true }
        // FNV-1a with a final mix, which returns the same hash on every gateway and after every restart.
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in appID.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        hash = (hash ^ 0xFF) &* 0x100_0000_01b3
        for byte in userID.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        hash = (hash ^ (hash >> 33)) &* 0xff51_afd7_ed55_8ccd
        hash ^= hash >> 33
        return hash % 100 < UInt64(max(0, percent))
    }
}
