/// What a request of the tracking API records.
enum BloomreachRecordKind: String {
    case customer
    case event
    case campaignClick = "campaign_click"
}
