import CountersignCore
import Testing

@testable import CountersignCLI

struct ShopSampleTests {
    @Test func theGeneratorHasThePublishedOutputsOfSplitMix64() {
        var random = SplitMix64(state: 1_234_567)
        #expect(random.next() == 6_457_827_717_110_365_317)
        #expect(random.next() == 3_203_168_211_198_807_973)
        #expect(random.next() == 9_817_491_932_198_370_423)
    }

    @Test func equalSeedsGenerateEqualEventsOnEveryPlatform() {
        let replay = ShopSample.replay(users: 2, eventsPerUser: 3)
        #expect(
            replay.events.map(\.properties["product_id"]) == [
                "tea-02", "tea-01", "tea-03", "tea-01", "pot-01", "mix-01",
            ])
    }

    @Test func eachShopperHasTheSameNumberOfEventsInTurns() {
        let replay = ShopSample.replay(users: 4, eventsPerUser: 120)
        #expect(replay.events.count == 480)
        #expect(
            replay.events.prefix(5).map(\.userID) == [
                "shopper-1", "shopper-2", "shopper-3", "shopper-4", "shopper-1",
            ])
        for number in 1...4 {
            let own = replay.events.filter { $0.userID == "shopper-\(number)" }
            #expect(own.count == 120)
            #expect(Set(own.map(\.name)) == ["Product Viewed", "Product Added", "Order Completed"])
        }
    }

    @Test func anotherSeedGivesOtherEvents() {
        #expect(
            ShopSample.replay(users: 1, eventsPerUser: 20, seed: 1).events
                != ShopSample.replay(users: 1, eventsPerUser: 20, seed: 2).events)
    }
}
