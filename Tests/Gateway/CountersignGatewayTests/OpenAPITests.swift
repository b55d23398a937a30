import CountersignGateway
import CountersignGatewayTesting
import Foundation
import GatewayModel
import GatewayTestSupport
import Testing

@testable import GatewayStorage

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

    private func page(_ name: String) throws -> String {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../../docs/reference/\(name).md").standardizedFileURL
        return try String(contentsOf: file, encoding: .utf8)
    }

    /// The first cells of a page's tables below a heading, without headers.
    private func cells(_ heading: String, of name: String) throws -> [String] {
        let parts = try page(name).components(separatedBy: "\n## \(heading)\n")
        let section = try #require(parts.dropFirst().first)
        let lines = section.components(separatedBy: "\n## ")[0].split(separator: "\n")
        // The line after a header is a line of dashes.
        let headers = lines.indices.filter { lines[$0].hasPrefix("| --- ") }.map { $0 - 1 }
        return lines.enumerated().filter {
            $0.element.hasPrefix("| ") && !$0.element.hasPrefix("| --- ") && !headers.contains($0.offset)
        }.map { String($0.element.split(separator: "|")[0].trimmingCharacters(in: .whitespaces)) }
    }

    private func names(in cells: [String]) -> [String] {
        cells.flatMap { $0.matches(of: /`([^`]+)`/).map { String($0.1) } }
    }

    @Test func theTablesOfMembersAreThoseOfTheSchemas() throws {
        let fixture = try GatewayFixture(.standard, enforcement: .disabled)
        let document = try #require(fixture.client().get("/openapi.json")).json
        let components = document["components"] as? [String: [String: Any]]
        func properties(_ schema: String) throws -> [String: Any] {
            let schema = try #require(components?["schemas"]?[schema] as? [String: Any])
            return try #require(schema["properties"] as? [String: Any])
        }
        #expect(try names(in: cells("Events", of: "http-api")).sorted() == properties("Event").keys.sorted())
        let stored = try properties("FollowedEvent")
        let verdicts = try #require((stored["verdict"] as? [String: Any])?["enum"] as? [String])
        let documented = try names(in: cells("Stored events", of: "event-format"))
        #expect(documented.sorted() == (stored.keys + verdicts).sorted())
    }

    /// A limit without a row is missing on the page. A number that no constant explains is wrong there.
    @Test func theLimitsOnThePageAreThoseOfTheCode() throws {
        let limits = GatewayLimits()
        func text(_ number: Int) -> String {
            number < 1_000 ? "\(number)" : "\(number / 1_000),\(String(number % 1_000 + 1_000).dropFirst())"
        }
        let (scanned, partitions) = (text(EventPage.maximumScanned), EventConsumerSettings.mostPartitions)
        let phrases: [String] = [
            "events in a batch: \(text(limits.batchEvents))",
            "bytes of an event: \(limits.eventBytes >> 10) KiB",
            "bytes of an id: \(EventIdentifier.longest); an integer id: \(EventIdentifier.mostDigits) digits",
            "levels of JSON: \(limits.jsonDepth); duplicate members, bad numbers, bad UTF-8",
            "multiply them by at most \(limits.compressionRatio)",
            "\(limits.headerFields) header fields; \(limits.headerBytes >> 10) KiB of header",
            "seconds for a header: \(limits.headerSeconds); for a body: \(limits.bodySeconds)",
            "a page of events: \(EventPage.mostBytes >> 20) MiB; events scanned for it: \(scanned)",
            "consumers of an app: \(EventConsumerRules.mostOfApp); partitions of each: \(partitions)",
            "webhooks: \(WebhookStore.mostOfApp) of an app, \(text(WebhookStore.most)) of a gateway",
            "streams: \(StreamStore.most) of a gateway",
            "public keys of an app: \(AppDirectory.maximumKeys)",
            "write keys: \(AppDirectory.maximumWriteKeys)",
            "App Inbox messages: \(text(ProjectStore.maximumInboxMessages))",
            "properties of a customer: \(text(Int(CustomerWriter.maximumProperties)))",
            "ids, properties and read messages: \(CustomerWriter.maximumBytes >> 20) MiB",
            "\(CustomerWriter.maximumSoftIDs) of a name, \(CustomerWriter.maximumAllSoftIDs) in all",
        ]
        let headings = ["Requests", "Connections and framing", "Events and readers", "Apps and customers"]
        var rest = try headings.flatMap { try cells($0, of: "limits") }
        for phrase in phrases {
            #expect(rest.filter { $0.contains(phrase) }.count == 1, "\(phrase)")
            rest = rest.map { $0.replacing(phrase, with: "") }
        }
        // The constants of these are private to their modules.
        let others = [
            "large requests waiting", "live views", "64 KiB decompression",
            "requests waiting in the admin API",
            "8 KB a second", "requests that read events", "a delivery to a webhook",
        ]
        for row in rest where row.contains(where: \.isNumber) {
            #expect(others.contains { row.contains($0) }, "\(row)")
        }
    }
}
