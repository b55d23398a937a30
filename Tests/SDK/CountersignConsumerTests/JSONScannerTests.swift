import Foundation
import Testing

@testable import CountersignConsumer

/// Truncated or invalid text must neither crash the scanner nor be read past its end.
struct JSONScannerTests {
    private func members(_ text: String) -> [String]? {
        var cursor = JSONScanner(Array(text.utf8))
        var names: [String] = []
        let isRead = cursor.members { name, cursor in
            names.append(String(decoding: name, as: UTF8.self))
            return cursor.value() != nil
        }
        return isRead ? names : nil
    }

    @Test(arguments: [
        ("{}", []), (" { } ", []), (#"{"a":1}"#, ["a"]), (#"{"a":[],"b":{}}"#, ["a", "b"]),
    ])
    func membersAreVisited(text: String, names: [String]) {
        #expect(members(text) == names)
    }

    @Test(arguments: [
        "", " ", "{", "{,}", #"{""#, #"{"a"#, #"{"a""#, #"{"a":"#, #"{"a":1"#, #"{"a":1,"#, #"{"a":1,}"#,
        "{a:1}", #"{a":1}"#, #"{'a':1}"#, #"{"a" 1}"#, #"{"a":1]"#, #"{"a":}"#, "[]", "7",
    ])
    func textThatIsNotAnObjectHasNoMembers(text: String) {
        #expect(members(text) == nil)
    }

    @Test(arguments: [("[]", 0), ("[1]", 1), (" [ 1 , [2, 3], {} ] ", 3)])
    func elementsAreVisited(text: String, count: Int) {
        var cursor = JSONScanner(Array(text.utf8))
        var visited = 0
        let isRead = cursor.elements { cursor in
            visited += 1
            return cursor.value() != nil
        }
        #expect(isRead)
        #expect(visited == count)
    }

    @Test(arguments: ["", "[", "[1", "[1,", "[,]", "[1}", "1]", "{}", "7"])
    func textThatIsNotAnArrayHasNoElements(text: String) {
        var cursor = JSONScanner(Array(text.utf8))
        #expect(!cursor.elements { $0.value() != nil })
    }

    @Test(arguments: ["", "\"", #""a"#, #""a\"#, #""a\""#, "{", #"{"a":"b"#, "[[]", "]", "}"])
    func anUnterminatedValueIsNotRead(text: String) {
        var cursor = JSONScanner(Array(text.utf8))
        #expect(cursor.value() == nil)
    }

    @Test(arguments: ["7", #""a\"b""#, "[[1],{}]", #"{"a":{"b":"}"}}"#])
    func valuesAreFoundAtTheirOffsets(text: String) {
        var cursor = JSONScanner(Array(" \(text) ,1".utf8))
        #expect(cursor.value() == 1..<text.utf8.count + 1)
    }
}
