internal import CountersignCore
internal import CountersignTransport
internal import Foundation

struct Finding: Sendable {
    enum Outcome: String, Sendable {
        case ok
        /// Works now, but not permanently or not securely.
        case warning
        case failed
    }

    let name: String
    let outcome: Outcome
    let detail: String
    var remedy: String?
    var code = ExitCode.failed

    static func ok(_ name: String, _ detail: String) -> Finding {
        Finding(name: name, outcome: .ok, detail: detail)
    }

    static func warning(_ name: String, _ detail: String, _ remedy: String? = nil) -> Finding {
        Finding(name: name, outcome: .warning, detail: detail, remedy: remedy)
    }

    static func failed(
        _ name: String, _ detail: String, _ remedy: String? = nil, code: ExitCode = .failed
    ) -> Finding {
        Finding(name: name, outcome: .failed, detail: detail, remedy: remedy, code: code)
    }
}

extension Finding {
    /// Compares the gateway's clock, which verifies tokens, with the local one. Nil without a `Date` header.
    static func clock(_ answer: TransportResponse, asked: Date, answered: Date) -> Finding? {
        answer.header("Date").flatMap(HTTPDate.seconds).map {
            clock(Double($0), asked: asked, answered: answered)
        }
    }

    /// Compares a time in seconds since 1970. The duration of the request does not count as a difference.
    static func clock(_ theirs: Double, asked: Date, answered: Date) -> Finding {
        let difference =
            max(0, theirs - answered.timeIntervalSince1970) + min(0, theirs - asked.timeIntervalSince1970)
        let seconds = Int(difference.rounded())
        guard abs(seconds) > 5 else {
            return .ok("clock", "the gateway's and this machine's agree")
        }
        return Finding(
            name: "clock", outcome: abs(seconds) > 30 ? .failed : .warning,
            detail:
                "the gateway's clock is \(abs(seconds)) s \(seconds > 0 ? "ahead of" : "behind") this one",
            remedy: "synchronize both by NTP: tokens are verified with the gateway's clock")
    }

    static func version(_ theirs: String) -> Finding {
        theirs == countersignVersion
            ? .ok("version", theirs)
            : .warning(
                "version", "the gateway is \(theirs), this program \(countersignVersion)",
                "use the program of the gateway's version")
    }
}
