internal import CountersignCore

/// The kind of a record in the tracking API.
enum BloomreachRecordKind: String, TextEnum {
    case customer
    case event
    case campaignClick = "campaign_click"
}
