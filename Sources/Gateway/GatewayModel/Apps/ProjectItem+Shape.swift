package import CountersignCore

extension ProjectItem {
    /// Validates an operator's JSON and adds default values. Throws `invalid`, which names the member and the
    /// expected type.
    package init(_ kind: Kind, _ value: JSONValue) throws(GatewayError) {
        var reader = try ProjectItemReader(value)
        id = try reader.text("id")
        switch kind {
        case .inAppMessage: try Self.checkInAppMessage(&reader, id: id)
        case .consentCategory: try Self.checkConsentCategory(&reader)
        }
        members = reader.members
    }

    private static func checkInAppMessage(
        _ message: inout ProjectItemReader, id: String
    ) throws(GatewayError) {
        try message.required("name", .string, default: .string(id))
        try message.required("frequency", .string, default: "always")
        try message.required("is_html", .bool, default: false)
        try message.required("is_rich_text", .bool, default: false)
        try message.required("variant_id", .integer, default: 0)
        try message.required("variant_name", .string, default: "")
        for (name, type) in [
            ("message_type", JSONType.string), ("payload", .object), ("payload_html", .string),
            ("load_priority", .integer), ("load_delay", .integer), ("close_timeout", .integer),
            ("has_tracking_consent", .bool), ("consent_category_tracking", .string),
        ] {
            try message.optional(name, type)
        }
        try message.required("date_filter", .object, default: [:])
        var dates = try message.object("date_filter")
        try dates.required("enabled", .bool, default: false)
        try dates.optional("from_date", .number)
        try dates.optional("to_date", .number)
        message.set("date_filter", .object(dates.members))
        var trigger = try message.object("trigger")
        _ = try trigger.text("event_type")
        try trigger.required("filter", .array, default: [])
        for filter in try trigger.objects("filter") {
            let attribute = try filter.object("attribute")
            switch try attribute.text("type") {
            case "timestamp": break
            case "property": _ = try attribute.text("property")
            default: throw attribute.fault("type", "property or timestamp")
            }
            let constraint = try filter.object("constraint")
            guard ["string", "number", "boolean"].contains(try constraint.text("type")) else {
                throw constraint.fault("type", "string, number or boolean")
            }
            _ = try constraint.text("operator")
            for operand in try constraint.objects("operands") {
                guard try operand.text("type") == "constant" else {
                    throw operand.fault("type", "constant")
                }
            }
        }
        message.set("trigger", .object(trigger.members))
    }

    private static func checkConsentCategory(_ category: inout ProjectItemReader) throws(GatewayError) {
        try category.required("legitimate_interest", .bool, default: false)
        try category.required("sources", .object, default: [:])
        var sources = try category.object("sources")
        for name in ["crm", "import", "page", "private_api", "public_api", "scenario"] {
            try sources.required(name, .bool, default: false)
        }
        category.set("sources", .object(sources.members))
        try category.required("translations", .object, default: [:])
        var translations = try category.object("translations")
        for (language, value) in translations.members where value != .null {
            var translation = try translations.object(language)
            try translation.required("name", .string, default: "")
            try translation.optional("description", .string)
            translations.set(language, .object(translation.members))
        }
        category.set("translations", .object(translations.members))
    }
}
