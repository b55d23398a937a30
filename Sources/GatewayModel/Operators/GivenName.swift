/// Rules for every name and id chosen by an operator. Names become parts of URLs, commands and file names.
package enum GivenName {
    /// Whether clients of HTTP take a text for a step in a path, and remove it (RFC 3986, section 5.2.4).
    package static func isPathStep(_ text: some StringProtocol) -> Bool {
        text.utf8.elementsEqual(".".utf8) || text.utf8.elementsEqual("..".utf8)
    }

    /// Whether the name is allowed for something new. A name that begins with `-` would look like an option in a
    /// command.
    package static func isUsable(_ text: some StringProtocol) -> Bool {
        !isPathStep(text) && text.utf8.first != UInt8(ascii: "-")
    }

    /// Completes the error message of a rule for a name's characters.
    package static let rule = "must not begin with - and must not be . or .."
}
