package import CountersignCore

extension FailureSample.Check: JSONConvertible {
    private static let shape = AnswerShape<Self>(
        named: "Check", .init("name", \.name), .init("ok", \.isOK), .init("detail", \.detail))

    package static var jsonShape: JSONShape { shape.shape }
    package var jsonValue: JSONValue { Self.shape.json(self) }

    package init?(jsonValue: JSONValue) {
        guard let members = jsonValue.members, let name = members["name"].flatMap({ String(jsonValue: $0) })
        else { return nil }
        self.init(
            name: name, isOK: members["ok"].flatMap { Bool(jsonValue: $0) },
            detail: members["detail"].flatMap { String(jsonValue: $0) } ?? "")
    }
}
