internal import CountersignCore

package enum VerdictKind: String, Sendable, TextEnum {
    case anonymous
    case notJudged = "not_judged"
    case accepted
    case acceptedWithWarning = "warned"
    case rejected
}
