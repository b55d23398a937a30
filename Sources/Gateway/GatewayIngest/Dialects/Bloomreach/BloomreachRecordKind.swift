internal import CountersignCore

enum BloomreachRecordKind: String, TextEnum {
    case customer
    case event
    case campaignClick = "campaign_click"
}
