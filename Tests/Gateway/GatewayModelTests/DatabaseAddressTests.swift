import Testing

@testable import GatewayModel

struct DatabaseAddressTests {
    @Test(
        arguments: [
            ("postgresql://u:p@h/d", "postgresql://u@h/d"),
            ("postgres://h/d?password=p&a=b", "postgres://h/d?a=b"),
            ("postgresql://u:p/w@h/d", "postgresql://u@h/d"),
            ("postgresql://u:p?a=b@h/d?a=b", "postgresql://u@h/d?a=b"),
            ("postgresql://h/d?pass%77ord=p&scram_client_key=k&a=b@c", "postgresql://h/d?a=b@c"),
            ("host=h password=p dbname=d", "host=h dbname=d"),
            ("host=h password =p dbname = d password = a=b", "host=h dbname=d"),
            ("", nil), ("countersign", nil), ("/var/lib/db", nil), ("mysql://h/d", nil),
            ("mysql://h/d?a=b", nil), ("http://h/?host=h", nil), ("POSTGRESQL://h/d", nil),
        ] as [(String, String?)])
    func databaseAddressesAreShownWithoutThePassword(text: String, shown: String?) {
        #expect(DatabaseAddress(text)?.description == shown)
    }

    @Test(
        arguments: [("", []), ("00fF", [0, 255]), ("0", nil), ("abc", nil), ("zz", nil), ("0\u{FF11}", nil)]
            as [(String, [UInt8]?)])
    func hexadecimalTextIsReadOnlyIfComplete(text: String, bytes: [UInt8]?) {
        #expect([UInt8](hexadecimal: text) == bytes)
    }
}
