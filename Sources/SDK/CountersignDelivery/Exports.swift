// Values that an app passes to every client, and codes that every client reports.
@_exported public import CountersignCore
