internal import CountersignCore

func json(_ values: [String: Any]) -> [String: JSONValue] { values.compactMapValues { JSONValue(any: $0) } }

func plain(_ values: [String: JSONValue]) -> [String: Any] { values.mapValues(\.any) }
