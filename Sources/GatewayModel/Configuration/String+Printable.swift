extension String {
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
