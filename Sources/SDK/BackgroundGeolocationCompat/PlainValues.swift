internal import CountersignCore

func json(_ values: [String: Any]) -> JSONObject {
    JSONObject(values.compactMapValues { JSONValue(any: $0) })
}

func plain(_ values: JSONObject) -> [String: Any] { Dictionary(values.mapValues(\.any)) }

/// Returns the value of a header field as text; nil for a nil or unsupported value.
func headerText(_ value: Any) -> String? {
    switch JSONValue(any: value) {
    case .string(let text): text
    case .null, nil: nil
    case .some(let value): value.description
    }
}
