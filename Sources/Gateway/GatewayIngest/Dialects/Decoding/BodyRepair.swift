package import CountersignJSON
internal import GatewayHTTP
internal import GatewayModel

/// Replaces events that are not JSON in a body, so that the other events can be stored. A replacement has the same
/// length, so offsets stay valid. At each nesting level, a byte is parsed a few times at most, so the time is linear.
package struct BodyRepair {
    /// The maximum number of members of an object that is searched for events or times.
    private static let mostMembers = 1_000

    private let request: HTTPRequest
    private let limits: GatewayLimits
    /// Parsers by the number of arrays and objects around a value, which count towards the depth limit.
    private var parsers: [Int: StrictJSONParser] = [:]
    private(set) var faults = EventFaults()
    private(set) var hasChanged = false

    init(_ request: HTTPRequest, _ limits: GatewayLimits) {
        self.request = request
        self.limits = limits
    }

    /// The offset of the top-level value.
    package var root: Int { request.body.withUnsafeBytes { StrictJSONParser.rootOffset(of: $0) } }

    package func byte(at offset: Int) -> UInt8? {
        request.body.indices.contains(offset) ? request.body[offset] : nil
    }

    /// Whether the member's name in the range means `text`, with or without escapes.
    package func holds(_ text: StaticString, in range: Range<Int>?) -> Bool {
        // No escape of one byte is longer than `\u0062`.
        guard let range, range.count <= 6 * text.utf8CodeUnitCount else { return false }
        let wanted = UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
        let name = request.body[range]
        guard name.contains(UInt8(ascii: "\\")) else { return name.elementsEqual(wanted) }
        let list = Array("[\"".utf8) + name + Array("\"]".utf8)
        let parser = StrictJSONParser(maximumBytes: list.count)
        return
            (try? parser.parse(bytes: list) { root in
                root.elements.contains { $0.utf8?.elementsEqual(wanted) ?? false }
            }) ?? false
    }

    /// The members of the object at `offset`; nil for no object, too many members, or a member without an end.
    package func members(at offset: Int) -> [JSONText.Part]? {
        guard byte(at: offset) == UInt8(ascii: "{") else { return nil }
        let parts = request.body.withUnsafeBytes {
            JSONText.parts(of: $0, at: offset, most: Self.mostMembers)
        }
        return parts.flatMap { $0.count > Self.mostMembers ? nil : $0 }
    }

    /// The elements of the array at `offset`; nil if there is no array or the end of an element cannot be found.
    /// If there are more than ``GatewayLimits/batchEvents``, one last element covers all remaining ones.
    package func elements(at offset: Int) -> [Range<Int>]? {
        guard byte(at: offset) == UInt8(ascii: "[") else { return nil }
        return request.body.withUnsafeBytes {
            JSONText.parts(of: $0, at: offset, most: limits.batchEvents)?.map(\.value)
        }
    }

    /// Empties a value that is not JSON and records the reason. Returns whether the value is JSON. A number out
    /// of range in a member of `times` does not make an event invalid.
    @discardableResult
    package mutating func isolate(_ value: Range<Int>, nesting: Int, times: [StaticString] = []) -> Bool {
        var found = error(of: value, nesting: nesting)
        if case .numberOutOfRange = found, clearTimes(times, at: value.lowerBound) {
            found = error(of: value, nesting: nesting)
        }
        guard let error = found else { return true }
        faults.reasons[value.lowerBound] = error.reason(for: "the event", limits)
        // An object or array stays an object or array, because some decoders recognise events by their type.
        switch request.body[value.lowerBound] {
        case UInt8(ascii: "{"): replace(value, by: "{}")
        case UInt8(ascii: "["): replace(value, by: "[]")
        default: replace(value, by: "0")
        }
        return false
    }

    /// Empties an array or object outside the events that is not JSON. Replaces an invalid number of at least 4
    /// bytes with `null`. The events are then not rejected because of this value.
    package mutating func clear(_ value: Range<Int>, nesting: Int) {
        guard error(of: value, nesting: nesting) != nil else { return }
        switch request.body[value.lowerBound] {
        case UInt8(ascii: "{"): replace(value, by: "{}")
        case UInt8(ascii: "["): replace(value, by: "[]")
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
            if value.count >= 4 { replace(value, by: "null") }
        default: break
        }
    }

    /// Replaces numbers that are out of range in the members `times` of the object at `offset` with `null`.
    /// Such a member counts as a time that cannot be read. Returns whether the body was changed.
    @discardableResult
    package mutating func clearTimes(_ times: [StaticString], at offset: Int) -> Bool {
        let found = (members(at: offset) ?? []).filter { member in
            times.contains { holds($0, in: member.name) }
        }
        // With more members than names, the object has duplicate members and is rejected.
        guard found.count <= times.count else { return false }
        let unusable = found.filter { member in
            if isNumber(member.value), case .numberOutOfRange = error(of: member.value, nesting: 0) {
                return true
            }
            return false
        }
        for member in unusable { replace(member.value, by: "null") }
        if !unusable.isEmpty { faults.times.insert(offset) }
        return !unusable.isEmpty
    }

    private func isNumber(_ value: Range<Int>) -> Bool {
        var text = request.body[value]
        func digits() -> Int {
            let count = text.prefix { 0x30...0x39 ~= $0 }.count
            text = text.dropFirst(count)
            return count
        }
        if text.first == UInt8(ascii: "-") { text = text.dropFirst() }
        let leadsWithZero = text.first == UInt8(ascii: "0")
        let whole = digits()
        guard whole > 0, whole == 1 || !leadsWithZero else { return false }
        if text.first == UInt8(ascii: ".") {
            text = text.dropFirst()
            guard digits() > 0 else { return false }
        }
        if let byte = text.first, byte | 0x20 == UInt8(ascii: "e") {
            text = text.dropFirst()
            if let sign = text.first, sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-") {
                text = text.dropFirst()
            }
            guard digits() > 0 else { return false }
        }
        return text.isEmpty
    }

    mutating func replaceUnpairedSurrogates() -> Bool {
        faults.replaced = request.body.withUnsafeMutableBytes {
            JSONText.replaceUnpairedSurrogates(in: $0)
        }
        return !faults.replaced.isEmpty
    }

    private mutating func error(of value: Range<Int>, nesting: Int) -> StrictJSONError? {
        let parser =
            parsers[nesting]
            ?? StrictJSONParser(
                maximumBytes: limits.bodyBytes, maximumDepth: max(1, limits.jsonDepth - nesting))
        parsers[nesting] = parser
        do {
            try request.body.withUnsafeBytes {
                try parser.parse(UnsafeRawBufferPointer(rebasing: $0[value])) { _ in }
            }
            return nil
        } catch {
            return error as? StrictJSONError ?? .syntax
        }
    }

    private mutating func replace(_ value: Range<Int>, by text: StaticString) {
        hasChanged = true
        request.body.withUnsafeMutableBytes { body in
            let blank = UnsafeMutableRawBufferPointer(rebasing: body[value])
            for index in blank.indices {
                blank[index] = index < text.utf8CodeUnitCount ? text.utf8Start[index] : UInt8(ascii: " ")
            }
        }
    }
}

package struct EventFaults {
    /// The reasons why events are not JSON, by the offset of the event.
    fileprivate(set) var reasons: [Int: String] = [:]
    /// The offsets of events whose time was a number that is out of range.
    fileprivate(set) var times: Set<Int> = []
    /// The offsets of replaced surrogates, which are now escapes of U+FFFD, in order.
    fileprivate(set) var replaced: [Int] = []

    /// The reason why an event, or a part of the event, is not JSON; nil if the event is JSON.
    package func reason(for event: Range<Int>) -> String? {
        if reasons.isEmpty { return nil }
        return reasons[event.lowerBound] ?? reasons.first { event.contains($0.key) }?.value
    }

    package func hasUnusableTime(_ event: Range<Int>) -> Bool { times.contains(event.lowerBound) }

    package func hasReplacement(in part: Range<Int>) -> Bool {
        var low = 0
        var high = replaced.count
        while low < high {
            let middle = (low + high) / 2
            if replaced[middle] < part.lowerBound { low = middle + 1 } else { high = middle }
        }
        return low < replaced.count && replaced[low] < part.upperBound
    }
}

extension StrictJSONError {
    func reason(for subject: String, _ limits: GatewayLimits) -> String {
        switch self {
        case .empty: "\(subject) is empty; send one JSON object"
        case .notUTF8: "\(subject) must be UTF-8 without a byte order mark"
        case .tooDeep: "\(subject) nests deeper than \(limits.jsonDepth) levels"
        case .numberOutOfRange: "a number in \(subject) is malformed or out of range"
        case .tooLarge: "\(subject) is larger than \(limits.bodyBytes) bytes"
        case .duplicateMember: "an object in \(subject) has two members with the same name"
        case .nameTooLong: "a member's name in \(subject) is too long"
        case .outOfMemory: "there is not enough memory for \(subject)"
        case .syntax: "\(subject) is not JSON"
        }
    }
}
