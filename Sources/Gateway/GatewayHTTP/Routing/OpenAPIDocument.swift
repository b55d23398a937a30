package import CountersignCore

package struct OpenAPIDocument {
    private let endpoints: [Endpoint]
    private let schemas: JSONObject

    /// `schemas` may contain the same name several times if the schemas are equal.
    package init(endpoints: [Endpoint], schemas: [JSONObject]) {
        self.endpoints = endpoints
        self.schemas = schemas.reduce(into: OpenAPISchemas.ofEveryRequest) { all, some in
            all.merge(some) { first, second in
                assert(first == second, "one name for two schemas")
                return first
            }
        }
    }

    package var bytes: [UInt8] {
        OpenAPI.document(
            "Countersign gateway",
            "Accepts events from apps, authenticated by tokens that their own backends sign",
            server: "/", paths: paths, schemas: schemas, securitySchemes: .object(securitySchemes)
        ).bytes
    }

    private var paths: BytewiseDictionary<JSONObject> {
        BytewiseDictionary(grouping: endpoints, by: \.path).mapValues { group in
            JSONObject(
                uniqueKeysWithValues: group.compactMap { endpoint in
                    endpoint.operation.map {
                        (endpoint.method.lowercased(), Self.operation($0, endpoint))
                    }
                })
        }
    }

    private var securitySchemes: JSONObject {
        let rows = endpoints.compactMap(\.operation).flatMap(\.security)
        return JSONObject(rows.joined().map { ($0.name, $0.json) }, uniquingKeysWith: { first, _ in first })
    }

    private static func operation(_ operation: APIOperation, _ endpoint: Endpoint) -> JSONValue {
        OpenAPI.operation(
            endpoint.method, endpoint.path, operation.summary,
            parts: operation.parts, part: ["type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"],
            parameters: operation.query.map { name, isRequired, schema in
                ["name": .string(name), "in": "query", "required": .bool(isRequired), "schema": schema]
            }, body: operation.body, types: operation.bodyTypes, responses: responses(operation),
            security: .array(
                operation.security.map { row in
                    .object(JSONObject(uniqueKeysWithValues: row.map { ($0.name, []) }))
                }))
    }

    private static func responses(_ operation: APIOperation) -> JSONObject {
        var statuses = [400, 413, 414, 415, 429, 431, 503]
        if !operation.security.isEmpty { statuses += [401, 403] }
        var responses: JSONObject = [:]
        for status in statuses + operation.rejections {
            // The server, rate limits and CORS reject requests with the schema `Failure`.
            let own = operation.failure
            let schema: JSONValue =
                own == "Failure"
                ? APIOperation.schema(own)
                : ["anyOf": [APIOperation.schema(own), APIOperation.schema("Failure")]]
            responses[String(status)] = OpenAPI.rejection(
                status, OpenAPISchemas.meanings[status] ?? "Rejected", "application/json", schema)
        }
        var success: JSONObject = ["description": "Done"]
        success["content"] = .object([
            operation.contentType: operation.answer.map { ["schema": $0] } ?? .object([:])
        ])
        responses[String(operation.status)] = .object(success)
        return responses
    }
}
