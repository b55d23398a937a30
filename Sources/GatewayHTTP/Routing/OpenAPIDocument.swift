package import CountersignCore

/// The OpenAPI 3.1 document of a table of endpoints.
package struct OpenAPIDocument {
    private let endpoints: [Endpoint]
    private let schemas: [String: JSONValue]

    /// A schema that several of `schemas` hold is shared and must be the same in all.
    package init(endpoints: [Endpoint], schemas: [[String: JSONValue]]) {
        self.endpoints = endpoints
        self.schemas = schemas.reduce(into: OpenAPISchemas.ofEveryRequest) { all, some in
            all.merge(some) { first, second in
                assert(first == second, "one name for two schemas")
                return first
            }
        }
    }

    /// The document as JSON.
    package var bytes: [UInt8] {
        JSONValue.object([
            "openapi": "3.1.0",
            "info": [
                "title": "Countersign gateway", "version": .string(countersignVersion),
                "summary": "Takes events of apps under tokens that their own backends sign",
                "license": ["name": "Apache-2.0", "identifier": "Apache-2.0"],
            ],
            "servers": [["url": "/"]],
            "paths": paths,
            "components": [
                "schemas": .object(schemas), "securitySchemes": .object(securitySchemes),
            ],
        ]).bytes
    }

    private var paths: JSONValue {
        var paths: [String: JSONValue] = [:]
        for (path, group) in Dictionary(grouping: endpoints, by: \.path) {
            var item: [String: JSONValue] = [:]
            for endpoint in group {
                guard let operation = endpoint.operation else { continue }
                item[endpoint.method.lowercased()] = Self.operation(operation, endpoint)
            }
            paths[path] = .object(item)
        }
        return .object(paths)
    }

    private var securitySchemes: [String: JSONValue] {
        let rows = endpoints.compactMap(\.operation).flatMap(\.security)
        return Dictionary(rows.joined().map { ($0.name, $0.json) }, uniquingKeysWith: { first, _ in first })
    }

    private static func operation(_ operation: APIOperation, _ endpoint: Endpoint) -> JSONValue {
        let words = endpoint.path.split { !$0.isLetter && !$0.isNumber }
        var members: [String: JSONValue] = [
            "operationId": .string(
                endpoint.method.lowercased()
                    + words.map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()),
            "summary": .string(operation.summary),
            "responses": .object(responses(operation)),
            "security": .array(
                operation.security.map { row in
                    .object(Dictionary(uniqueKeysWithValues: row.map { ($0.name, []) }))
                }),
        ]
        let parameters = parameters(operation, endpoint)
        if !parameters.isEmpty { members["parameters"] = .array(parameters) }
        if let body = operation.body {
            let content = operation.bodyTypes.map { ($0, JSONValue.object(["schema": body])) }
            members["requestBody"] = [
                "required": true, "content": .object(Dictionary(uniqueKeysWithValues: content)),
            ]
        }
        return .object(members)
    }

    private static func parameters(_ operation: APIOperation, _ endpoint: Endpoint) -> [JSONValue] {
        let names = endpoint.path.split(separator: "/").filter { $0.first == "{" }
            .map { String($0.dropFirst().dropLast()) }
        let inPath: [JSONValue] = names.map { name in
            [
                "name": .string(name), "in": "path", "required": true,
                "schema": ["type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"],
            ]
        }
        let inQuery: [JSONValue] = operation.query.map { name, isRequired, schema in
            [
                "name": .string(name), "in": "query", "required": .bool(isRequired), "schema": schema,
            ]
        }
        return inPath + inQuery
    }

    /// What every request may meet before its endpoint, and what it has of its own.
    private static func responses(_ operation: APIOperation) -> [String: JSONValue] {
        var statuses = [400, 413, 415, 429, 431, 503]
        if !operation.security.isEmpty { statuses.append(401) }
        var responses: [String: JSONValue] = [:]
        for status in statuses + operation.refusals {
            // The layers below an endpoint speak the native shape.
            let own = operation.failure
            let schema: JSONValue =
                own == "Failure"
                ? APIOperation.schema(own)
                : ["anyOf": [APIOperation.schema(own), APIOperation.schema("Failure")]]
            var response: [String: JSONValue] = [
                "description": .string(OpenAPISchemas.meanings[status] ?? "Refused"),
                "content": ["application/json": ["schema": schema]],
            ]
            if status == 429 || status == 503 {
                response["headers"] = ["Retry-After": ["schema": ["type": "integer", "minimum": 1]]]
            }
            responses[String(status)] = .object(response)
        }
        var success: [String: JSONValue] = ["description": "Done"]
        success["content"] = .object([
            operation.contentType: operation.answer.map { ["schema": $0] } ?? .object([:])
        ])
        responses[String(operation.status)] = .object(success)
        return responses
    }
}
