import CountersignCore
import Testing

@testable import CountersignCLI

/// The screen of `countersign top`.
struct TopScreenTests {
    private let overview: JSONValue = [
        "last_minute": ["accepted": 12, "events": 40, "rejected": 3], "now_ms": 100_000_000,
        "started_ms": 1_000_000, "version": "1.2.3",
        "ready": [
            "ok": .bool(false),
            "checks": [
                ["name": "storage", "ok": .bool(true), "detail": "written just now"],
                ["name": "disk", "ok": .bool(false), "detail": "too little is free"],
            ],
        ],
        "storage": ["events": 7, "file_bytes": 525_832, "free_bytes": 63_758_082_048],
        "warnings": [["text": "the app old is being deleted"]],
    ]

    private func app(_ id: String, _ requests: Int64, _ rejected: Int64, _ warned: Int64) -> JSONValue {
        [
            "id": .string(id), "enforcement": "required",
            "last_24h": [
                "requests": .integer(requests), "rejected": .integer(rejected), "warned": .integer(warned),
            ],
        ]
    }

    @Test func whatIsWrongStandsAboveTheBusiestApps() {
        let lines = TopScreen(
            place: "http://gateway", overview: overview,
            apps: [app("quiet", 0, 0, 0), app("blog", 200, 1, 0), app("shop", 1_000, 20, 5)]
        ).lines
        #expect(
            lines == [
                "http://gateway  NOT READY  version 1.2.3, up 1 d 3 h",
                "Last minute: 12 requests accepted, 3 rejected, 40 events",
                "Stored: 7 events, 525.8 kB; 63.7 GB free",
                "! disk: too little is free",
                "! the app old is being deleted",
                "",
                "APP    ENFORCEMENT  REQUESTS IN 24 H  REJECTED  WARNED  FAILING",
                "shop   required                 1000        20       5      3 %",
                "blog   required                  200         1       0      1 %",
                "quiet  required                    0         0       0        -",
            ])
    }

    @Test func countsThatAServerMakesUpDoNotOverflow() {
        let overview: JSONValue = ["now_ms": .integer(.max), "started_ms": .integer(.min)]
        let apps = [app("a", .max, .max, .max), app("b", .min, .min, .min), app("c", 1, .max, 0)]
        let lines = TopScreen(place: "", overview: overview, apps: apps).lines
        #expect(lines.contains { $0.hasPrefix("a ") && $0.hasSuffix(" 200 %") })
        #expect(lines.contains { $0.hasPrefix("b ") && $0.hasSuffix(" -") })
    }

    @Test func countsThatTheGatewayCannotReadAreLeftOut() {
        let app: JSONValue = ["id": "shop", "enforcement": "required", "last_24h": .null]
        let line = TopScreen(place: "", overview: .null, apps: [app]).lines.last ?? ""
        #expect(line.split(separator: " ") == ["shop", "required", "-", "-", "-", "-"])
    }

    @Test(arguments: [
        (JSONValue.null, "Stored: 7 events, 525.8 kB"),
        (.integer(.max), "Stored: 7 events, 525.8 kB; 9223372.0 TB free"),
        (.integer(999), "Stored: 7 events, 525.8 kB; 999 B free"),
    ])
    func whatIsFreeStandsThereWhereItIsKnown(_ free: JSONValue, _ line: String) {
        let overview: JSONValue = [
            "storage": ["events": 7, "file_bytes": 525_832, "free_bytes": free]
        ]
        #expect(TopScreen(place: "", overview: overview, apps: []).lines[2] == line)
    }

    @Test func ofManyAppsTheRestIsCounted() {
        let apps = (1...25).map { app("app-\($0)", Int64($0), 0, 0) }
        let lines = TopScreen(place: "", overview: overview, apps: apps).lines
        #expect(lines.last == "… and 5 more apps")
        #expect(!lines.contains { $0.hasPrefix("app-5 ") } && lines.contains { $0.hasPrefix("app-6 ") })
    }
}
