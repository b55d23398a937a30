package import CountersignCore

package enum OpenAPI {
    package static func document(
        _ title: String, _ summary: String, server: String, paths: BytewiseDictionary<JSONObject>,
        schemas: JSONObject, securitySchemes: JSONValue
    ) -> JSONValue {
        [
            "openapi": "3.1.0",
            "info": [
                "title": .string(title), "version": .string(countersignVersion), "summary": .string(summary),
                "license": ["name": "Apache-2.0", "identifier": "Apache-2.0"],
            ],
            "servers": [["url": .string(server)]], "paths": .object(paths.mapValues { .object($0) }),
            "components": ["schemas": .object(schemas), "securitySchemes": securitySchemes],
        ]
    }

    /// An operation. `part` is the schema of the path parameters that `parts` omits; `types` are the body's types.
    package static func operation(
        _ method: String, _ path: String, _ summary: String, parts: JSONObject = [:],
        part: JSONValue,
        parameters: [JSONValue],
        body: JSONValue?, types: [String] = ["application/json"], responses: JSONObject,
        security: JSONValue, with more: JSONObject = [:]
    ) -> JSONValue {
        let words = path.split { !$0.isLetter && !$0.isNumber }
        var members = more
        members["operationId"] = .string(
            method.lowercased() + words.map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined())
        members["summary"] = .string(summary)
        members["responses"] = .object(responses)
        members["security"] = security
        let names = path.split(separator: "/").filter { $0.hasPrefix("{") }.map {
            String($0.dropFirst().dropLast())
        }
        let inPath: [JSONValue] = names.map {
            ["name": .string($0), "in": "path", "required": true, "schema": parts[$0] ?? part]
        }
        if !(inPath + parameters).isEmpty { members["parameters"] = .array(inPath + parameters) }
        if let body {
            let content = types.map { ($0, JSONValue.object(["schema": body])) }
            members["requestBody"] = [
                "required": true, "content": .object(JSONObject(uniqueKeysWithValues: content)),
            ]
        }
        return .object(members)
    }

    package static func rejection(
        _ status: Int, _ description: String, _ type: String, _ schema: JSONValue
    ) -> JSONValue {
        var response: JSONObject = [
            "description": .string(description), "content": .object([type: ["schema": schema]]),
        ]
        if status == 429 || status == 503 {
            response["headers"] = ["Retry-After": ["schema": ["type": "integer", "minimum": 1]]]
        }
        return .object(response)
    }
}
