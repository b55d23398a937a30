import Testing

@testable import CountersignCLI

struct SuggestionTests {
    @Test(arguments: [
        ("", "", 0), ("", "abc", 3), ("abc", "", 3), ("abc", "abc", 0), ("kitten", "sitting", 3),
        ("ab", "ba", 1),
        ("srev", "serv", 1),
    ])
    func distanceCountsDifferentLetters(source: String, target: String, distance: Int) {
        #expect(Suggestion.distance(from: source, to: target) == distance)
    }

    @Test func theNearestWordIsSuggestedUnlessAllAreTooDifferent() {
        #expect(Suggestion.nearest(to: "tokne", among: ["tail", "token", "key"]) == "token")
        #expect(Suggestion.nearest(to: "xyz", among: ["tail", "token", "key"]) == nil)
    }
}
