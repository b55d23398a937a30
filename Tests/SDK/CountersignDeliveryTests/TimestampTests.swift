import CountersignCore
import CountersignTransport
import Foundation
import Testing

@testable import CountersignDelivery

struct TimestampTests {
    @Test(arguments: [
        (0.0, "1970-01-01T00:00:00.000Z"), (951_782_399.999, "2000-02-28T23:59:59.999Z"),
        (951_782_400.0, "2000-02-29T00:00:00.000Z"), (4_107_542_400.0, "2100-03-01T00:00:00.000Z"),
        (-1.0, "1969-12-31T23:59:59.000Z"), (2_147_483_648.0, "2038-01-19T03:14:08.000Z"),
        (-1e18, "0000-01-01T00:00:00.000Z"), (1e18, "9999-12-31T23:59:59.999Z"),
    ])
    func writesRFC3339(seconds: Double, text: String) {
        var output: [UInt8] = []
        Timestamp.write(Date(timeIntervalSince1970: seconds), to: &output)
        #expect(String(decoding: output, as: UTF8.self) == text)
    }

    @Test func keepsEachMillisecond() {
        for count in stride(from: Int64(-61_000_000_000_007), to: 250_000_000_000_000, by: 77_777_777_771) {
            var output: [UInt8] = []
            Timestamp.write(Milliseconds(count).date, to: &output)
            #expect(String(decoding: output, as: UTF8.self) == RFC3339.text(milliseconds: count))
        }
    }

    @Test(arguments: [
        ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777.0), ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Mon, 29 Feb 2016 23:59:60 GMT", 1_456_790_400), ("Sunday, 06-Nov-94 08:49:37 GMT", nil),
        ("Sun, 06 Nov 1994 08:49 GMT", nil), ("Sun, 06 Nov 1994 08:49:37 CET", nil), ("x", nil), ("", nil),
    ])
    func readsHTTPDatesOfThePreferredForm(text: String, seconds: Double?) {
        #expect(Timestamp.date(fromHTTP: text)?.timeIntervalSince1970 == seconds)
    }

    @Test(arguments: [
        ("120", 120.0), ("0", 0), ("Thu, 01 Jan 1970 00:01:40 GMT", 100), ("soon", nil), ("-5", nil),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
    ])
    func readsBothFormsOfRetryAfter(text: String, seconds: Double?) {
        let response = TransportResponse(status: 503, headers: [("retry-after", text)])
        #expect(ServerAnswer.retryAfter(in: response, serverTime: Date(timeIntervalSince1970: 0)) == seconds)
    }
}
