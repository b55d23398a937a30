/// Rules for names and ids that operators choose. Names become parts of URLs, commands and file names.
package enum GivenName {
    /// Whether HTTP clients remove the text from a path as a dot segment (RFC 3986, section 5.2.4).
    package static func isPathStep(_ text: some StringProtocol) -> Bool {
        text.utf8.elementsEqual(".".utf8) || text.utf8.elementsEqual("..".utf8)
    }

    /// Whether a name is usable. A name that begins with `-` would look like a command's option.
    package static func isUsable(_ text: some StringProtocol) -> Bool {
        !isPathStep(text) && text.utf8.first != UInt8(ascii: "-")
    }

    package static let rule = "must not begin with - and must not be . or .."
}
