import Testing

@testable import GatewayAdmin

struct ExportTests {
    @Test(arguments: [
        ("=1+1", "'=1+1"), ("\n=1+1", "\"'\n'=1+1\""), ("\r@x", "\"'\r'@x\""), ("\t+x", "\"'\t'+x\""),
        (" =1", " '=1"), ("\u{FF1D}1", "'\u{FF1D}1"), ("\u{FF0B}1", "'\u{FF0B}1"),
        ("\u{FF0D}1", "'\u{FF0D}1"),
        ("\u{FF20}x", "'\u{FF20}x"), ("a;=1", "\"a;'=1\""), ("a; \"=1", "\"a; \"\"'=1\""),
        ("a|=1", "a|'=1"), ("a\n=1", "\"a\n'=1\""), ("a\t=1", "\"a\t'=1\""), ("-5", "-5"), ("-5a", "'-5a"),
        // A quote followed by a combining mark is one `Character`, but must still be doubled (RFC 4180).
        ("a\"\u{301},=1", "\"a\"\"\u{301},=1\""), ("x\r\n", "\"x\r\n\""), ("a=b", "a=b"), ("", ""),
        (#"{"a":[1,-2]}"#, #""{""a"":[1,-2]}""#),
    ])
    func noCellBeginsLikeAFormulaWhateverTheSeparator(cell: String, line: String) {
        var bytes: [UInt8] = []
        CSV.write([cell], to: &bytes)
        #expect(String(decoding: bytes, as: UTF8.self) == line + "\r\n")
    }
}
