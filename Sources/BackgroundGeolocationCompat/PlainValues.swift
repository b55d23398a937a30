internal import CountersignCore

func json(_ values: [String: Any]) -> JSONObject {
    JSONObject(values.compactMapValues { JSONValue(any: $0) })
}

func plain(_ values: JSONObject) -> [String: Any] { Dictionary(values.mapValues(\.any)) }
