internal import CountersignJSON
internal import GatewayHTTP

extension BodyRepair {
    /// Empties invalid elements of the arrays `lists`, so that the others can be stored. Calls `clear` for other
    /// members. In an element's `times`, numbers out of range become null.
    mutating func isolateElements(of lists: [StaticString], times: [StaticString]) {
        for member in members(at: root) ?? [] {
            guard lists.contains(where: { holds($0, in: member.name) }) else {
                clear(member.value, nesting: 1)
                continue
            }
            // If the ends of the elements cannot be found, the list stays invalid, so the body is rejected.
            for element in elements(at: member.value.lowerBound) ?? [] {
                isolate(element, nesting: 2, times: times)
            }
        }
    }
}

extension EventFaults {
    /// Whether a surrogate was replaced in one of the members. In an id, the replacement could make two ids equal.
    func haveReplaced(_ names: [StaticString], of object: JSONNode, at json: Range<Int>, in text: [UInt8])
        -> Bool
    {
        guard hasReplacement(in: json) else { return false }
        let members = Array(object.members)
        let spans = text.withUnsafeBytes {
            StrictJSONParser.childSpans(of: $0, at: json.lowerBound, count: members.count)
        }
        return zip(members, spans).contains { member, span in
            hasReplacement(in: span)
                && names.contains {
                    member.name.elementsEqual(
                        UnsafeBufferPointer(start: $0.utf8Start, count: $0.utf8CodeUnitCount))
                }
        }
    }
}
