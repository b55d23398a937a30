extension String {
    /// Whether it has any of U+0000 to U+001F or U+007F.
    package var hasControlCharacter: Bool { utf8.contains { $0 < 0x20 || $0 == 0x7F } }

    /// Without control and invisible characters, and none that changes the direction of what follows.
    package var isPrintable: Bool {
        unicodeScalars.allSatisfy { scalar in
            switch scalar.properties.generalCategory {
            case .control, .format, .surrogate, .privateUse, .unassigned, .lineSeparator, .paragraphSeparator:
                false
            default: true
            }
        }
    }
}
