internal import CountersignCore
internal import GatewayHTTP
internal import GatewayModel

struct AdminDocument {
    let routes: [AdminOperation]

    static func route(describing routes: [AdminOperation]) -> AdminRoute {
        func route(_ described: [AdminOperation]) -> AdminRoute {
            AdminRoute("GET", "/openapi.json", .viewer, "Describe this API", .json(.map(.any))) {
                $0.answer(AdminDocument(routes: described).value)
            }
        }
        return route(routes + [route([]).operation])
    }

    var value: JSONValue {
        var paths: BytewiseDictionary<JSONObject> = [:]
        for route in routes { paths[route.path, default: [:]][route.method.lowercased()] = operation(route) }
        var schemas: JSONObject = ["Problem": Self.problem]
        for route in routes { route.types.forEach { $0.collect(into: &schemas) } }
        return OpenAPI.document(
            "Countersign admin API",
            "Manages a gateway: apps, keys, enforcement, analytics, sessions and users",
            server: AdminOperation.prefix, paths: paths, schemas: schemas,
            securitySchemes: Self.credentials)
    }

    private func operation(_ route: AdminOperation) -> JSONValue {
        OpenAPI.operation(
            route.method, route.path, route.summary, part: ["type": "string", "minLength": 1],
            parameters: Self.parameters(route), body: route.body?.schema(isBody: true),
            responses: responses(route), security: Self.security(route),
            with: ["x-role": route.role.map { .string($0.rawValue) } ?? .null])
    }

    private static func parameters(_ route: AdminOperation) -> [JSONValue] {
        var parameters: [JSONValue] = route.query.map {
            ["name": .string($0.name), "in": "query", "schema": $0.type.schema(isBody: false)]
        }
        if route.match != .no {
            let more =
                route.match == .requiredToReplace
                ? "; 428 without it if there is something to replace, 412 with it if there is nothing" : ""
            parameters.append([
                "name": "If-Match", "in": "header", "schema": ["type": "string"],
                "required": .bool(route.match == .required),
                "description": .string("The ETag of what was read, or *" + more),
            ])
        }
        if route.takesIdempotencyKey {
            parameters.append([
                "name": "Idempotency-Key", "in": "header",
                "schema": ["type": "string", "minLength": 1, "maxLength": 255],
                "description": "Within a day, the same request with the same key gets the same answer",
            ])
        }
        return parameters
    }

    private func responses(_ route: AdminOperation) -> JSONObject {
        var statuses = [422, 429, 503] + route.rejections
        if route.role != nil || !route.isSafe { statuses += [401, 403] }
        if route.path.contains("{") { statuses.append(404) }
        if !route.isSafe { statuses += [400, 404, 409, 413, 415] }
        if route.match != .no { statuses.append(412) }
        if route.match == .required || route.match == .requiredToReplace { statuses.append(428) }
        var responses: JSONObject = [:]
        for status in statuses {
            responses[String(status)] = OpenAPI.rejection(
                status, AdminProblem.title(status), "application/problem+json",
                ["$ref": "#/components/schemas/Problem"])
        }
        // Errors of the server, such as 413 for a large body, are not problem details.
        responses["default"] = [
            "description": "Rejected before this endpoint handled it", "content": ["application/json": [:]],
        ]
        let (status, content): (Int, JSONObject) =
            switch route.returns {
            case .json(let type, let status):
                (status, ["application/json": ["schema": type.schema(isBody: false)]])
            case .list(let type):
                (200, ["application/json": ["schema": JSONShape.page(of: type).schema(isBody: false)]])
            case .nothing: (204, [:])
            case .file(let types): (200, BytewiseDictionary(uniqueKeysWithValues: types.map { ($0, [:]) }))
            }
        var success: JSONObject = ["description": "Done"]
        if !content.isEmpty { success["content"] = .object(content) }
        let isTagged = routes.contains { $0.path == route.path && $0.match != .no }
        if isTagged, status != 204 {
            success["headers"] = ["ETag": ["schema": ["type": "string"]]]
        }
        responses[String(status)] = .object(success)
        return responses
    }

    private static func security(_ route: AdminOperation) -> JSONValue {
        if route.role == nil { return [] }
        return [["token": []], route.isSafe ? ["session": []] : ["session": [], "csrf": []]]
    }

    private static let credentials: JSONValue = [
        "token": [
            "type": "http", "scheme": "bearer",
            "description": "An API token, which begins with csa_",
        ],
        "session": [
            "type": "apiKey", "in": "cookie", "name": "__Host-countersign",
            "description": "Set by signing in; named countersign where HTTP is served",
        ],
        "csrf": [
            "type": "apiKey", "in": "header", "name": "X-CSRF-Token",
            "description":
                "The csrf value of GET /session; required with every change that is made with the cookie",
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
            case .list(let type): JSONShape.page(of: type)
            case .nothing, .file: nil
            }
        return [body, answer].compactMap { $0 }
    }
}

extension JSONShape {
    static func page(of item: JSONShape) -> JSONShape {
        .all(["items": .list(item), "next": .nullable(.string)])
    }

    /// JSON Schema 2020-12. Optional members may be null in request bodies only.
    func schema(isBody: Bool) -> JSONValue {
        switch self {
        case .text(.max): ["type": "string"]
        case .text(let longest):
            [
                "type": "string", "maxLength": .integer(Int64(longest)),
                "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]*$",
            ]
        case .raw(let longest): ["type": "string", "maxLength": .integer(Int64(longest))]
        case .choice(let words): ["type": "string", "enum": .array(words.map { .string($0) })]
        case .integer(let range):
            [
                "type": "integer", "minimum": .integer(range.lowerBound),
                "maximum": .integer(range.upperBound),
            ]
        case .number: ["type": "number"]
        case .bool: ["type": "boolean"]
        case .list(let type): ["type": "array", "items": type.schema(isBody: isBody)]
        case .listOrOne(let type):
            ["anyOf": [JSONShape.list(type).schema(isBody: isBody), type.schema(isBody: isBody)]]
        case .map(let type): ["type": "object", "additionalProperties": type.schema(isBody: isBody)]
        case .nullable(let type): ["anyOf": [type.schema(isBody: isBody), ["type": "null"]]]
        case .any: [:]
        case .named(let name, _): ["$ref": .string("#/components/schemas/\(name)")]
        case .object(let members):
            [
                "type": "object", "additionalProperties": false,
                "required": .array(members.filter(\.isRequired).map { .string($0.name) }),
                "properties": .object(
                    JSONObject(
                        uniqueKeysWithValues: members.map { member in
                            let type =
                                isBody && !member.isRequired ? JSONShape.nullable(member.type) : member.type
                            return (member.name, type.schema(isBody: isBody))
                        })),
            ]
        }
    }

    /// Adds the named shapes.
    fileprivate func collect(into schemas: inout JSONObject) {
        switch self {
        case .list(let type), .listOrOne(let type), .map(let type), .nullable(let type):
            type.collect(into: &schemas)
        case .object(let members): for member in members { member.type.collect(into: &schemas) }
        case .named(let name, let type):
            schemas[name] = type.schema(isBody: false)
            type.collect(into: &schemas)
        case .text, .raw, .choice, .integer, .number, .bool, .any: break
        }
    }
}
