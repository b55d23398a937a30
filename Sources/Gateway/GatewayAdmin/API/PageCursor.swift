internal import CountersignCore
internal import GatewayHTTP
internal import GatewayModel

/// The unique key of a page's last item. Items added meanwhile cause neither gaps nor repetitions.
struct PageCursor: Sendable, Comparable {
    let number: Int64
    let id: String

    init(_ number: Int64, _ id: String = "") {
        self.number = number
        self.id = id
    }

    init?(_ text: String) {
        let parts = text.split(separator: "_", maxSplits: 1, omittingEmptySubsequences: false)
        guard let number = Int64(parts[0]), number >= 0, String(number) == parts[0] else { return nil }
        self.init(number, parts.count > 1 ? String(parts[1]) : "")
    }

    var text: String { id.isEmpty ? String(number) : "\(number)_\(id)" }

    static func < (left: PageCursor, right: PageCursor) -> Bool {
        // Compared by bytes, like in SQLite, because canonically equivalent ids are distinct.
        left.number == right.number
            ? left.id.utf8.lexicographicallyPrecedes(right.id.utf8) : left.number < right.number
    }

    static func == (left: PageCursor, right: PageCursor) -> Bool { !(left < right || right < left) }
}

extension AdminCall {
    var limit: Int { Int(integer("limit") ?? 50) }

    /// The end of the previous page; nil for the first page. Throws 422 for a malformed cursor.
    func cursor() throws -> PageCursor? {
        guard let text = query("cursor") else { return nil }
        guard let position = PageCursor(text) else {
            throw AdminProblem.invalidParameter("cursor", "is not the next value of a page of this list")
        }
        return position
    }

    func answer<Item>(all items: [Item], _ shape: AnswerShape<Item>, status: Int = 200) -> HTTPResponse {
        answer(["items": .array(items.map(shape.json)), "next": .null], status: status)
    }

    /// A page of items that are all in memory. Throws 422 for a malformed cursor.
    func page<Item>(
        _ items: [Item], isDescending: Bool = false, at position: (Item) -> PageCursor,
        json: (Item) throws -> JSONValue
    ) throws -> HTTPResponse {
        let cursor = try cursor()
        let rest = items.map { (position($0), $0) }
            .filter { place, _ in cursor.map { isDescending ? place < $0 : place > $0 } ?? true }
            .sorted { isDescending ? $0.0 > $1.0 : $0.0 < $1.0 }
        return try page(read: rest.map(\.1), at: position, json: json)
    }

    /// A page of items read from the cursor on. If there are more, `items` has one item more than the limit.
    func page<Item>(
        read items: [Item], at position: (Item) -> PageCursor, json: (Item) throws -> JSONValue
    ) throws -> HTTPResponse {
        let page = items.prefix(limit)
        let next = items.count > limit ? page.last.map { position($0).text } : nil
        return answer([
            "items": .array(try page.map(json)), "next": next.map { .string($0) } ?? .null,
        ])
    }
}
