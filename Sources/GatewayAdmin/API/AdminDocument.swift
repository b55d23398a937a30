internal import CountersignCore
internal import GatewayModel

/// The OpenAPI 3.1 document of the admin API, made of the table of routes that serves.
struct AdminDocument {
    let routes: [AdminOperation]

    /// The route that answers with the document, which describes itself too.
    static func route(describing routes: [AdminOperation]) -> AdminRoute {
        func route(_ described: [AdminOperation]) -> AdminRoute {
            AdminRoute("GET", "/openapi.json", .viewer, "Describe this API", .json(.map(.any))) {
                $0.answer(AdminDocument(routes: described).value)
            }
        }
        return route(routes + [route([]).operation])
    }

    var value: JSONValue {
        var paths: [String: [String: JSONValue]] = [:]
        for route in routes { paths[route.path, default: [:]][route.method.lowercased()] = operation(route) }
        var schemas: [String: JSONValue] = ["Problem": Self.problem]
        for route in routes { route.types.forEach { $0.collect(into: &schemas) } }
        return [
            "openapi": "3.1.0",
            "info": [
                "title": "Countersign admin API", "version": .string(countersignVersion),
                "summary": "Apps, keys, enforcement, analytics, sessions and people of a gateway",
                "license": ["name": "Apache-2.0", "identifier": "Apache-2.0"],
            ],
            "servers": [["url": .string(AdminOperation.prefix)]],
            "paths": .object(paths.mapValues { .object($0) }),
            "components": ["schemas": .object(schemas), "securitySchemes": Self.credentials],
        ]
    }

    private func operation(_ route: AdminOperation) -> JSONValue {
        let words = route.path.split { !$0.isLetter && !$0.isNumber }
        var members: [String: JSONValue] = [
            "operationId": .string(
                route.method.lowercased()
                    + words.map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()),
            "summary": .string(route.summary), "responses": .object(responses(route)),
            "security": Self.security(route), "x-role": route.role.map { .string($0.rawValue) } ?? .null,
        ]
        let parameters = Self.parameters(route)
        if !parameters.isEmpty { members["parameters"] = .array(parameters) }
        if let body = route.body {
            members["requestBody"] = [
                "required": true, "content": ["application/json": ["schema": body.schema(isBody: true)]],
            ]
        }
        return .object(members)
    }

    private static func parameters(_ route: AdminOperation) -> [JSONValue] {
        var parameters: [JSONValue] = route.path.split(separator: "/").filter { $0.first == "{" }.map {
            part in
            [
                "name": .string(String(part.dropFirst().dropLast())), "in": "path", "required": true,
                "schema": ["type": "string", "minLength": 1],
            ]
        }
        parameters += route.query.map { parameter in
            [
                "name": .string(parameter.name), "in": "query",
                "schema": parameter.type.schema(isBody: false),
            ]
        }
        if route.match != .no {
            parameters.append([
                "name": "If-Match", "in": "header", "schema": ["type": "string"],
                "description": .string(
                    route.match == .required
                        ? "The ETag of what was read, or *; 428 without it when there is something to replace"
                        : "The ETag of what was read, or *"),
            ])
        }
        if route.takesIdempotencyKey {
            parameters.append([
                "name": "Idempotency-Key", "in": "header",
                "schema": ["type": "string", "minLength": 1, "maxLength": 255],
                "description": "The same request under the same key is answered as before, within a day",
            ])
        }
        return parameters
    }

    private func responses(_ route: AdminOperation) -> [String: JSONValue] {
        var statuses = [422, 429, 503]
        if route.role != nil || !route.isSafe { statuses += [401, 403] }
        if route.path.contains("{") { statuses.append(404) }
        if !route.isSafe { statuses += [400, 404, 409, 413, 415] }
        if route.match != .no { statuses.append(412) }
        if route.match == .required { statuses.append(428) }
        var responses: [String: JSONValue] = [:]
        for status in statuses {
            var response: [String: JSONValue] = [
                "description": .string(AdminProblem.title(status)),
                "content": [
                    "application/problem+json": ["schema": ["$ref": "#/components/schemas/Problem"]]
                ],
            ]
            if status == 429 || status == 503 {
                response["headers"] = ["Retry-After": ["schema": ["type": "integer", "minimum": 1]]]
            }
            responses[String(status)] = .object(response)
        }
        // What lies below every endpoint, such as the limit of bytes, has a shape of its own.
        responses["default"] = [
            "description": "Refused before it got here", "content": ["application/json": [:]],
        ]
        let (status, content): (Int, [String: JSONValue]) =
            switch route.returns {
            case .json(let type, let status):
                (status, ["application/json": ["schema": type.schema(isBody: false)]])
            case .list(let type):
                (200, ["application/json": ["schema": Self.page(type).schema(isBody: false)]])
            case .nothing: (204, [:])
            case .file(let types): (200, Dictionary(uniqueKeysWithValues: types.map { ($0, [:]) }))
            }
        var success: [String: JSONValue] = ["description": "Done"]
        if !content.isEmpty { success["content"] = .object(content) }
        let isTagged = routes.contains { $0.path == route.path && $0.match != .no }
        if isTagged, status != 204 {
            success["headers"] = ["ETag": ["schema": ["type": "string"]]]
        }
        responses[String(status)] = .object(success)
        return responses
    }

    fileprivate static func page(_ type: JSONShape) -> JSONShape {
        .all(["items": .list(type), "next": .nullable(.string)])
    }

    private static func security(_ route: AdminOperation) -> JSONValue {
        if route.role == nil { return [] }
        return [["token": []], route.isSafe ? ["session": []] : ["session": [], "csrf": []]]
    }

    private static let credentials: JSONValue = [
        "token": [
            "type": "http", "scheme": "bearer",
            "description": "An API token: `countersign admin token create`",
        ],
        "session": [
            "type": "apiKey", "in": "cookie", "name": "__Host-countersign",
            "description": "Set by signing in; named countersign where HTTP is served",
        ],
        "csrf": [
            "type": "apiKey", "in": "header", "name": "X-CSRF-Token",
            "description": "csrf of GET /session, with every change that a cookie is sent with",
        ],
    ]

    private static let problem = JSONShape.object([
        .must("type", .string), .must("title", .string), .must("status", .integer(400...599)),
        .must("detail", .string), .must("code", .string), .must("request_id", .string),
        .may(
            "errors",
            .list(.object([.may("pointer", .string), .may("parameter", .string), .must("detail", .string)]))),
    ]).schema(isBody: false)
}

extension AdminOperation {
    var isSafe: Bool { method == "GET" }

    fileprivate var types: [JSONShape] {
        let answer: JSONShape? =
            switch returns {
            case .json(let type, _): type
            case .list(let type): AdminDocument.page(type)
            case .nothing, .file: nil
            }
        return [body, answer].compactMap { $0 }
    }
}

extension JSONShape {
    /// JSON Schema 2020-12. Members that may be missing may be null in bodies only.
    func schema(isBody: Bool) -> JSONValue {
        switch self {
        case .text(let longest):
            longest == .max ? ["type": "string"] : ["type": "string", "maxLength": .integer(Int64(longest))]
        case .choice(let words): ["type": "string", "enum": .array(words.map { .string($0) })]
        case .integer(let range):
            [
                "type": "integer", "minimum": .integer(range.lowerBound),
                "maximum": .integer(range.upperBound),
            ]
        case .number: ["type": "number"]
        case .bool: ["type": "boolean"]
        case .list(let type): ["type": "array", "items": type.schema(isBody: isBody)]
        case .map(let type): ["type": "object", "additionalProperties": type.schema(isBody: isBody)]
        case .nullable(let type): ["anyOf": [type.schema(isBody: isBody), ["type": "null"]]]
        case .any: [:]
        case .named(let name, _): ["$ref": .string("#/components/schemas/\(name)")]
        case .object(let members):
            [
                "type": "object", "additionalProperties": false,
                "required": .array(members.filter(\.isRequired).map { .string($0.name) }),
                "properties": .object(
                    Dictionary(
                        uniqueKeysWithValues: members.map { member in
                            let type =
                                isBody && !member.isRequired ? JSONShape.nullable(member.type) : member.type
                            return (member.name, type.schema(isBody: isBody))
                        })),
            ]
        }
    }

    /// Adds the shapes that stand under a name.
    fileprivate func collect(into schemas: inout [String: JSONValue]) {
        switch self {
        case .list(let type), .map(let type), .nullable(let type): type.collect(into: &schemas)
        case .object(let members): for member in members { member.type.collect(into: &schemas) }
        case .named(let name, let type):
            schemas[name] = type.schema(isBody: false)
            type.collect(into: &schemas)
        case .text, .choice, .integer, .number, .bool, .any: break
        }
    }
}
