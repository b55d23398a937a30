internal import CountersignCore
internal import GatewayModel

/// What a schema says of a text whose length is limited: JSON Schema counts characters and the gateway bytes, so a text may be
/// refused that the schema takes, but none is taken that the schema refuses.
enum LimitedText {
    /// A text of 1 to `longest` bytes.
    static func schema(longest: Int) -> JSONValue {
        [
            "type": "string", "minLength": 1, "maxLength": .integer(Int64(longest)),
            "description": .string("At most \(longest) bytes in UTF-8."),
        ]
    }

    /// The schema of an ``EventIdentifier``, which may be absent, null or empty.
    static func identifier(_ more: String = "") -> JSONValue {
        [
            "type": ["string", "integer", "null"], "maxLength": .integer(Int64(EventIdentifier.longest)),
            "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]*$",
            "description": .string(
                "At most \(EventIdentifier.longest) bytes in UTF-8. An integer, without fraction and exponent and with at most "
                    + "\(EventIdentifier.mostDigits) digits, is the same as the text of its digits."
                    + (more.isEmpty ? "" : " " + more)),
        ]
    }
}
