extension String {
    /// Whether the text has no control characters, invisible characters or changes of text direction.
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
