import GatewayModel
import Testing

@testable import GatewayObservability

struct FrequentClientsTests {
    @Test func manyRequestsOfANewClientDoNotHideTheOthers() {
        var clients = FrequentClients()
        func client(_ number: Int) -> ClientInfo { ClientInfo(sdk: "sdk \(number)") }
        // Fills the table of counted clients. Eleven clients are more frequent than the others.
        for number in 0..<1_200 { clients.count(client(number), times: number < 10 ? 100 : 5) }
        clients.count(client(5_000), times: 500)
        // The next minute names the most frequent clients first, then new ones while there is room.
        for number in 6_000..<6_400 { _ = clients.note(client(number), minute: 1) }
        let named = [3, 5_000].map { clients.note(client($0), minute: 1) }
        #expect(named == [true, true])
    }
}
