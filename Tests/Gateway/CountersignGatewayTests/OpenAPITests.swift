import CountersignGateway
import CountersignGatewayTesting
import Foundation
import GatewayTestSupport
import Testing

@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct OpenAPITests {
    @Test func everyEndpointHasASummaryAndEveryReferenceResolves() throws {
        let fixture = try GatewayFixture(.standard, enforcement: .disabled)
        let connection = try fixture.client()
        let answer = try #require(connection.get("/openapi.json"))
        #expect(answer.headers["content-type"] == "application/json")
        let paths = try #require(answer.json["paths"] as? [String: [String: Any]])
        #expect(paths["/v1/batch"]?["post"] != nil)
        #expect(paths["/track/v2/projects/{token}/customers"]?["post"] != nil)
        for (path, operations) in paths {
            #expect(!operations.isEmpty, "\(path) is not described")
            for operation in operations.values {
                #expect(((operation as? [String: Any])?["summary"] as? String)?.isEmpty == false, "\(path)")
            }
        }
        let components = answer.json["components"] as? [String: [String: Any]]
        let schemas = try #require(components?["schemas"]?.keys)
        let references = answer.body.components(separatedBy: ##""#/components/schemas/"##).dropFirst()
        #expect(!references.isEmpty)
        for reference in references {
            let name = String(reference.prefix { $0 != "\"" })
            #expect(schemas.contains(name), "there is no schema \(name)")
        }
    }
}
