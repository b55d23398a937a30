internal import CountersignJSON
internal import GatewayHTTP

/// Empties the invalid records in an upload of locations; ``GeolocationDecoder`` describes the shapes.
///
/// Clears other invalid members. An object that is still not JSON is one invalid record. The
/// body is not rejected, because the vendor's SDK repeats a request for ever after a 400.
extension BodyRepair {
    mutating func isolateLocations() {
        let root = root
        if let elements = elements(at: root) {
            for element in elements { isolateRecords(in: element, nesting: 1) }
        } else if let members = members(at: root), let last = members.last {
            // The object ends at the first closing brace after the last member.
            var end = last.value.upperBound
            while byte(at: end) != UInt8(ascii: "}"), byte(at: end) != nil { end += 1 }
            isolateRecords(in: root..<(end + 1), nesting: 0)
        }
    }

    private mutating func isolateRecords(in object: Range<Int>, nesting: Int) {
        if let members = members(at: object.lowerBound),
            !members.contains(where: { holds("coords", in: $0.name) }),
            let holder = members.first(where: { holds("location", in: $0.name) })
                ?? members.first(where: { holdsLocations($0.value) })
        {
            for member in members where member.value != holder.value {
                clear(member.value, nesting: nesting + 1)
            }
            if let elements = elements(at: holder.value.lowerBound),
                elements.allSatisfy({ isContainer($0) }) || elements.contains(where: { isLocation($0) })
            {
                for element in elements { isolate(element, nesting: nesting + 2, times: ["timestamp"]) }
            } else {
                isolate(holder.value, nesting: nesting + 1, times: ["timestamp"])
            }
        }
        isolate(object, nesting: nesting, times: ["timestamp"])
    }

    private func isContainer(_ value: Range<Int>) -> Bool {
        [UInt8(ascii: "{"), UInt8(ascii: "[")].contains(byte(at: value.lowerBound))
    }

    private func holdsLocations(_ value: Range<Int>) -> Bool {
        isLocation(value) || elements(at: value.lowerBound)?.contains { isLocation($0) } == true
    }

    private func isLocation(_ value: Range<Int>) -> Bool {
        members(at: value.lowerBound)?.contains { holds("coords", in: $0.name) } == true
    }
}
