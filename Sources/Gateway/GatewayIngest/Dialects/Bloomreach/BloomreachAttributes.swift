internal import CountersignCore
internal import CountersignJSON
internal import GatewayHTTP
internal import GatewayModel

struct BloomreachAttributes {
    let call: BloomreachCall
    let customers: any CustomerStore

    static let maximum = 100
    /// The size of a response in bytes from which further attributes fail.
    static let maximumBytes = 1 << 20

    private static let closed =
        "no customer has these ids, or the customer's registered id is not in a valid token of the request"

    private enum Attribute: Sendable {
        case property(String)
        case identifier(String)
        case invalid(String)
    }

    func outcome() throws(HTTPResponse) -> HTTPOutcome {
        let (identifiers, attributes) = try call.body {
            root throws(HTTPResponse) -> ([CustomerIdentifier], [Attribute]) in
            let identifiers = try call.requiredIdentifiers(root)
            guard let list = root["attributes"], list.kind == .array else {
                throw call.reject("Field 'attributes' must be an array.")
            }
            return (identifiers, list.elements.map(Self.attribute))
        }
        guard attributes.count <= Self.maximum else {
            throw call.reject("a request may ask for at most \(Self.maximum) attributes")
        }
        let caller = try call.admit(identifiers)
        let request = call.request
        let reading = Reading(
            appID: call.app.id, readable: caller.readable, attributes: attributes, customers: customers)
        return call.path.read(reading.results) { result in
            switch result {
            case .success(let json): BloomreachAnswer.success([("results", json)])
            case .failure(let failure): BloomreachAnswer.unreadable(failure, request)
            }
        }
    }

    private static func attribute(_ node: JSONNode) -> Attribute {
        switch node["type"]?.word {
        case "property":
            guard let name = node["property"]?.string else { return .invalid("property must be a string") }
            return .property(name)
        case "id":
            guard let name = node["id"]?.string else { return .invalid("id must be a string") }
            return .identifier(name)
        case let type?:
            return .invalid("there are no attributes of type \(type); ask for property or id")
        case nil: return .invalid("type must be property or id")
        }
    }

    private struct Reading: Sendable {
        let appID: String
        let readable: [CustomerIdentifier]
        let attributes: [Attribute]
        let customers: any CustomerStore

        @Sendable func results() throws -> [UInt8] {
            let customer = try customers.open(readable, appID: appID).customer
            var results = Array("[".utf8)
            for (index, attribute) in attributes.enumerated() {
                if index > 0 { results.append(UInt8(ascii: ",")) }
                if results.count >= BloomreachAttributes.maximumBytes {
                    fail("the answer is too large: ask for this attribute alone", &results)
                } else {
                    try write(attribute, of: customer, to: &results)
                }
            }
            results.append(UInt8(ascii: "]"))
            return results
        }

        private func write(
            _ attribute: Attribute, of customer: StoredCustomer?, to output: inout [UInt8]
        ) throws {
            switch attribute {
            case .property(let name):
                guard let customer else { return fail(BloomreachAttributes.closed, &output) }
                succeed(try customers.property(name, of: customer).map { Array($0.utf8) }, &output)
            case .identifier(let name):
                guard let customer else { return fail(BloomreachAttributes.closed, &output) }
                let value = try customers.identifier(name, of: customer)
                succeed(value.map { JSONValue.string($0).bytes }, &output)
            case .invalid(let reason): fail(reason, &output)
            }
        }

        private func succeed(_ value: [UInt8]?, _ output: inout [UInt8]) {
            output.append(contentsOf: #"{"success":true,"value":"#.utf8)
            output.append(contentsOf: value ?? Array("null".utf8))
            output.append(UInt8(ascii: "}"))
        }

        private func fail(_ reason: String, _ output: inout [UInt8]) {
            JSONValue.object(["success": false, "error": .string(reason), "value": .null]).write(to: &output)
        }
    }
}
