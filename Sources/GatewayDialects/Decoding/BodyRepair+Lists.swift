internal import CountersignJOSE
internal import GatewayHTTP

extension BodyRepair {
    /// Takes out the bad elements of these members of the body, and clears bad members beside them.
    mutating func isolateElements(of lists: [StaticString]) {
        for member in members(at: root) ?? [] {
            guard lists.contains(where: { holds($0, in: member.name) }) else {
                clear(member.value, nesting: 1)
                continue
            }
            // If the elements cannot be told apart, the body stays as it is and is rejected.
            for element in elements(at: member.value.lowerBound) ?? [] { isolate(element, nesting: 2) }
        }
    }
}

extension EventFaults {
    /// Whether a half surrogate was replaced in one of these members of an object. Two ids that differ in such halves only
    /// would become one, so an event with one is rejected.
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
