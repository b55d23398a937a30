import Testing

@testable import CountersignCLI

struct ServerSentEventsTests {
    private let text =
        "retry: 1000\nevent: sampling\nid: 7\ndata: {\"one_in\":1}\n\n: note\r\n\r\nid:8\r\ndata:a\r\ndata: b\r\rdata: c\n"

    @Test(arguments: 1...20)
    func eventsAreParsedWhateverTheChunkBoundaries(length: Int) {
        var parser = ServerSentEvents()
        var events: [ServerSentEvents.Event] = []
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            events += parser.read(Array(rest.prefix(length)))
            rest = rest.dropFirst(length)
        }
        #expect(
            events == [
                .init(name: "sampling", id: "7", data: #"{"one_in":1}"#), .init(id: "8", data: "a\nb"),
            ])
    }
}
