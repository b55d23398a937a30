package import CountersignCore
internal import GatewayModel

/// Schemas of text with a limited length. JSON Schema counts characters and the gateway counts bytes. So the
/// gateway may reject text that matches the schema, but never accepts text that does not match.
package enum LimitedText {
    package static func schema(longest: Int) -> JSONValue {
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
