/// Rules for every name and id that an operator chooses, and that then is part of URLs, commands or file names.
package enum GivenName {
    /// Whether clients of HTTP take a text for a step in a path, and remove it (RFC 3986, section 5.2.4).
    package static func isPathStep(_ text: some StringProtocol) -> Bool {
        text.utf8.elementsEqual(".".utf8) || text.utf8.elementsEqual("..".utf8)
    }

    /// Whether a new thing may have the name. One that begins with `-` would be an option in a command.
    package static func isUsable(_ text: some StringProtocol) -> Bool {
        !isPathStep(text) && text.utf8.first != UInt8(ascii: "-")
    }

    /// What the name must not be, to follow a rule for its characters.
    package static let rule = "must not begin with - and must not be . or .."
}
