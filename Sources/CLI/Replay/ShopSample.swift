internal import CountersignCore

/// Sample shop events for the demo. They are equal for equal seeds on all platforms.
struct ShopSample {
    private static let products: [(id: String, name: String, cents: Int64)] = [
        ("tea-01", "Darjeeling, first flush", 1290), ("tea-02", "Sencha", 980),
        ("tea-03", "Lapsang souchong", 1120),
        ("cup-01", "Cup, celadon", 2400), ("cup-02", "Cup, porcelain", 1850),
        ("pot-01", "Teapot, cast iron", 5900),
        ("tin-01", "Tin, 200 g", 640), ("mix-01", "Sampler of six", 1990),
    ]

    private var random: SplitMix64

    init(seed: UInt64) {
        random = SplitMix64(state: seed)
    }

    /// A replay of several shoppers, each with the same number of events, interleaved.
    static func replay(users: Int, eventsPerUser: Int, seed: UInt64 = 2026) -> Replay {
        let visits = (1...users).map { number in
            var sample = ShopSample(seed: seed &+ UInt64(number))
            return sample.events(userID: "shopper-\(number)", count: eventsPerUser)
        }
        let events = (0..<eventsPerUser).flatMap { index in visits.map { $0[index] } }
        return Replay(source: "sample of shop events", events: events)
    }

    mutating func events(userID: String, count: Int) -> [ReplayEvent] {
        var events: [ReplayEvent] = []
        var order = 0
        while events.count < count {
            var cart: [Int] = []
            for _ in 0..<(2 + pick(4)) {
                let product = pick(Self.products.count)
                events.append(event(userID, "Product Viewed", of: product))
                if pick(3) == 0 {
                    events.append(event(userID, "Product Added", of: product))
                    cart.append(product)
                }
            }
            guard !cart.isEmpty, pick(2) == 0 else { continue }
            order += 1
            let cents = cart.reduce(0) { $0 + Self.products[$1].cents }
            events.append(
                ReplayEvent(
                    userID: userID, name: "Order Completed",
                    properties: [
                        "order_id": .string("\(userID)-\(order)"), "total_cents": .integer(cents),
                        "currency": "EUR", "products": .array(cart.map { .string(Self.products[$0].id) }),
                    ]))
        }
        return Array(events.prefix(count))
    }

    private func event(_ userID: String, _ name: String, of product: Int) -> ReplayEvent {
        let product = Self.products[product]
        return ReplayEvent(
            userID: userID, name: name,
            properties: [
                "product_id": .string(product.id), "name": .string(product.name),
                "price_cents": .integer(product.cents),
            ])
    }

    private mutating func pick(_ count: Int) -> Int {
        Int(random.next() % UInt64(count))
    }
}

/// Random numbers that are equal on all platforms and Swift versions, which `Int.random(in:using:)` does not guarantee.
struct SplitMix64 {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }
}
