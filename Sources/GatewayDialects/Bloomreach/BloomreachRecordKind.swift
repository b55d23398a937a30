internal import CountersignCore

/// What a request of the tracking API records.
enum BloomreachRecordKind: String, TextEnum {
    case customer
    case event
    case campaignClick = "campaign_click"
}
