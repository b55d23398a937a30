import CountersignCore
import Testing

/// "anaïs" with ï as one code point, and as two.
private let composed = "ana\u{EF}s"
private let decomposed = "anai\u{308}s"

/// Texts are equal only if their UTF-8 bytes are equal.
struct BytewiseTextTests {
    private struct Name: Hashable {
        let text: String
        let optional: String?
    }

    private enum Word: String, TextEnum {
        case known = "ana\u{EF}s"
    }

    @Test func twoUnicodeFormsAreTwoTexts() {
        #expect(composed != decomposed && !(composed == decomposed))
        #expect(composed[...] != decomposed[...] && composed[...] != decomposed)
        let (one, other): (String?, String?) = (composed, decomposed)
        let (isEqual, isSame) = (one == other, one == decomposed)
        #expect(!isEqual && !isSame && one != nil)
        #expect([composed] != [decomposed] && ![composed].contains(decomposed))
        #expect(
            (composed < decomposed)
                == (Array(composed.utf8).lexicographicallyPrecedes(Array(decomposed.utf8))))
        #expect(!decomposed.hasPrefix("ana\u{EF}") && !decomposed.contains("\u{EF}"))
        switch decomposed {
        case composed: Issue.record("matched by its canonical form")
        default: break
        }
    }

    @Test func synthesizedComparisonsCompareBytes() {
        let (one, other) = (
            Name(text: composed, optional: composed), Name(text: decomposed, optional: decomposed)
        )
        #expect(one != other && Set([one, other]).count == 2)
        #expect(Word(rawValue: composed) == .known && Word(rawValue: decomposed) == nil)
    }

    @Test func aDictionaryAndASetKeepBothForms() {
        var numbers: BytewiseDictionary = [composed: 1, decomposed: 2]
        #expect(numbers.count == 2 && numbers[composed] == 1 && numbers[decomposed] == 2)
        numbers[composed] = nil
        #expect(numbers == [decomposed: 2])
        #expect(BytewiseSet([composed, decomposed]).count == 2)
        #expect(BytewiseDictionary(grouping: [composed, decomposed], by: \.self).count == 2)
    }

    @Test func propertiesWhoseNamesDifferInUnicodeFormAreBothWritten() {
        let value: JSONValue = [composed: 1, decomposed: 2]
        #expect(String(decoding: value.bytes, as: UTF8.self) == "{\"\(decomposed)\":2,\"\(composed)\":1}")
    }

    @Test(arguments: [
        ("a,b,,c", ["a", "b", "c"]), (",", []), ("a,\u{301}b", ["a", "\u{301}b"]),
    ])
    func textIsSplitAtBytes(text: String, parts: [String]) {
        #expect(text.split(separator: ",").map(String.init) == parts)
    }

    @Test func textIsFoundByItsBytes() {
        let text = "a-----BEGIN X-----\u{301}-----END"
        #expect(text.range(of: "-----BEGIN ").map { text[$0.upperBound...].hasPrefix("X-----") } == true)
        #expect(
            text.range(of: "absent") == nil && text[...].range(of: "-----END")?.upperBound == text.endIndex)
        #expect("a+b+\u{301}".replacing("+", with: "%20") == "a%20b%20\u{301}")
        #expect("a:b".firstIndex(of: ":") == "a:b".index(after: "a:b".startIndex))
        #expect("ab".hasSuffix("b") && !"b".hasSuffix("ab") && "".hasPrefix(""))
    }
}
