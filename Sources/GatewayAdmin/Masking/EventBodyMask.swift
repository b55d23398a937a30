internal import CountersignCore
internal import Foundation
internal import GatewayModel
internal import GatewayStorage

/// The body of an event for those who need not know whose it is.
///
/// Members that hold an id have its pseudonym. What describes a person (traits, attributes, customer properties, names,
/// e-mail addresses, phone numbers) is not shown, and neither is anything that an `identify` event says. The other
/// members stay, and wherever one of these values stands in them again, in a URL or a text, it is replaced there too.
struct EventBodyMask {
    private enum Treatment {
        case user, anonymous, hidden, network
    }

    /// Members by their names in lower case, without `_`, `-`, `$` and blanks.
    private static let treatments: [String: Treatment] = {
        var found: [String: Treatment] = [:]
        for name in [
            "userid", "previousid", "externalid", "externaluserid", "externalids", "customerid",
            "customerids",
            "profileid", "accountid", "contactid", "memberid", "uid", "sub", "subject", "registered", "login",
            "username", "useralias", "useraliases", "aliasname",
        ] {
            found[name] = .user
        }
        for name in [
            "anonymousid", "distinctid", "cookie", "deviceid", "deviceuuid", "uuid", "advertisingid", "idfa",
            "idfv",
            "gaid", "adid", "brazeid", "sessionid", "devicetoken", "pushtoken", "googlepushnotificationid",
            "applepushnotificationid", "macaddress", "serialnumber",
        ] {
            found[name] = .anonymous
        }
        for name in [
            "traits", "userattributes", "attributes", "usertraits", "userproperties", "email", "emailaddress",
            "mail",
            "phone", "phonenumber", "mobile", "firstname", "lastname", "fullname", "middlename", "birthday",
            "dateofbirth", "dob", "address", "street", "postalcode", "zip", "token", "accesstoken",
            "authorization",
            "password",
        ] {
            found[name] = .hidden
        }
        for name in ["ip", "ipaddress", "clientip", "remoteip"] { found[name] = .network }
        return found
    }()

    /// Objects whose member `id` is an id of somebody, by their names in the same way.
    private static let owners: [String: Treatment] = [
        "device": .anonymous, "visitor": .anonymous, "user": .user, "customer": .user, "account": .user,
        "person": .user, "profile": .user, "contact": .user, "member": .user,
    ]

    /// What an `identify` event may show beside ids: nothing that says who somebody is.
    private static let factsOfIdentify: Set = [
        "type", "event", "messageid", "timestamp", "originaltimestamp", "sentat", "receivedat", "time",
        "channel",
        "context", "version", "integrations", "customerids",
    ]

    /// One value and what stands for it wherever it is found.
    private struct Replacement {
        /// In ASCII lower case; not empty.
        let text: [UInt8]
        let shown: String
        /// For each beginning of the text, how much of it stands at that beginning's end too.
        let borders: [Int]

        init(_ text: [UInt8], _ shown: String) {
            self.text = text
            self.shown = shown
            var borders = [0]
            for index in text.indices.dropFirst() {
                var length = borders[index - 1]
                while length > 0, text[index] != text[length] { length = borders[length - 1] }
                borders.append(text[index] == text[length] ? length + 1 : 0)
            }
            self.borders = borders
        }
    }

    /// More different values than this in one event, and no other text of it is shown.
    private static let mostReplacements = 24
    static let nothing = "…"
    /// What stands in a URL as it is (RFC 3986, section 2.3).
    private static let unreserved = CharacterSet.alphanumerics.union(CharacterSet(charactersIn: "-._~"))

    private let pseudonyms: Pseudonyms
    private let isIdentify: Bool
    private var replacements: [Replacement] = []
    /// By their bytes: two that look the same are two, and text as such may take long to compare.
    private var known: Set<[UInt8]> = []
    private var hidesAllText = false

    init(_ pseudonyms: Pseudonyms, _ event: StoredEvent, body: JSONValue) {
        self.pseudonyms = pseudonyms
        isIdentify = event.type == EventKind.identify.rawValue
        if let id = event.userID { note(id, pseudonyms.user(id)) }
        if let id = event.anonymousID { note(id, pseudonyms.anonymous(id)) }
        collect(body, nil, in: nil)
        // A longer one may hold a shorter one.
        replacements.sort { $0.text.count > $1.text.count }
    }

    init(_ pseudonyms: Pseudonyms, user: String, body: JSONValue) {
        self.pseudonyms = pseudonyms
        isIdentify = false
        note(user, pseudonyms.user(user))
        collect(body, nil, in: nil)
        replacements.sort { $0.text.count > $1.text.count }
    }

    init(_ pseudonyms: Pseudonyms, _ identifiers: [CustomerIdentifier]) {
        self.pseudonyms = pseudonyms
        isIdentify = false
        for id in identifiers {
            note(id.value, id.isHard ? pseudonyms.user(id.value) : pseudonyms.anonymous(id.value))
        }
        replacements.sort { $0.text.count > $1.text.count }
    }

    // MARK: What is to be replaced

    private mutating func note(_ text: String, _ shown: String) {
        guard !text.isEmpty, known.insert(Array(text.utf8)).inserted else { return }
        guard replacements.count < Self.mostReplacements else {
            hidesAllText = true
            return
        }
        replacements.append(Replacement(Self.lowercased(text), shown))
        if let encoded = text.addingPercentEncoding(withAllowedCharacters: Self.unreserved),
            !encoded.utf8.elementsEqual(text.utf8)
        {
            replacements.append(Replacement(Self.lowercased(encoded), shown))
        }
    }

    private mutating func collect(_ value: JSONValue, _ inherited: Treatment?, in owner: String?) {
        switch value {
        case .object(let members):
            for (name, value) in members {
                collect(value, inherited ?? Self.treatment(name, in: owner), in: name)
            }
        case .array(let elements): for element in elements { collect(element, inherited, in: owner) }
        default:
            guard let inherited, let text = Self.text(value) else { return }
            // A short word such as `true`, `de` or `12` stands for too much else.
            if inherited == .hidden, text.utf8.count < 5 { return }
            note(text, shown(text, inherited))
        }
    }

    private func shown(_ text: String, _ treatment: Treatment) -> String {
        switch treatment {
        case .user: pseudonyms.user(text)
        case .anonymous: pseudonyms.anonymous(text)
        case .hidden: Self.nothing
        case .network: FailureSample.network(of: text)
        }
    }

    /// `owner` is the name of the object that the member is in; nil for the body itself.
    private static func treatment(_ name: String, in owner: String?) -> Treatment? {
        let name = plain(name)
        return treatments[name] ?? (name == "id" ? owner.flatMap { owners[plain($0)] } : nil)
    }

    private static func plain(_ name: String) -> String {
        // None that is known is longer. What a stranger sends instead may take long to look at.
        guard name.utf8.count <= 64 else { return "" }
        return name.lowercased().filter { !"_-$ ".contains($0) }
    }

    /// Nil for what names nobody.
    private static func text(_ value: JSONValue) -> String? {
        switch value {
        case .string(let text): text
        case .integer(let number): String(number)
        case .number(let number): String(number)
        case .null, .bool, .array, .object: nil
        }
    }

    // MARK: What is shown

    /// The body with everything replaced.
    func masked(_ body: JSONValue) -> JSONValue {
        if case .object(let members) = body { .object(masked(members)) } else { masked(body, nil, in: nil) }
    }

    /// The members of a body with everything replaced.
    func masked(_ members: [String: JSONValue]) -> [String: JSONValue] {
        masked(members, in: nil) { name in
            isIdentify && !Self.factsOfIdentify.contains(Self.plain(name)) ? .hidden : nil
        }
    }

    private func masked(
        _ members: [String: JSONValue], in owner: String?, otherwise: (String) -> Treatment?
    ) -> [String: JSONValue] {
        var shown: [String: JSONValue] = [:]
        for (name, value) in members {
            shown[self.name(name)] = masked(
                value, Self.treatment(name, in: owner) ?? otherwise(name), in: name)
        }
        return shown
    }

    private func masked(_ value: JSONValue, _ treatment: Treatment?, in owner: String?) -> JSONValue {
        switch value {
        case .object(let members): return .object(masked(members, in: owner) { _ in treatment })
        case .array(let elements): return .array(elements.map { masked($0, treatment, in: owner) })
        case .null: return value
        case .bool: return treatment == .hidden ? .string(Self.nothing) : value
        case .string(let text):
            return .string(treatment.map { shown(text, $0) } ?? self.text(text))
        case .integer, .number:
            let text = Self.text(value) ?? ""
            if let treatment { return .string(shown(text, treatment)) }
            let isKnown = replacements.first { $0.text.elementsEqual(text.utf8) }
            return isKnown.map { .string($0.shown) } ?? value
        }
    }

    /// Text in which nobody is named.
    func text(_ text: String) -> String { hidesAllText ? Self.nothing : replaced(text) }

    /// A member's name in which nobody is named.
    private func name(_ text: String) -> String {
        hidesAllText && known.contains(Array(text.utf8)) ? Self.nothing : replaced(text)
    }

    private func replaced(_ text: String) -> String {
        var output = text
        for replacement in replacements { output = Self.replace(replacement, in: output) }
        return Self.withoutAddresses(output)
    }

    private static func replace(_ replacement: Replacement, in text: String) -> String {
        let bytes = Array(text.utf8)
        let small = lowercased(text)
        let sought = replacement.text
        var output: [UInt8] = []
        var position = 0
        while let found = find(replacement, in: small, from: position) {
            let end = found + sought.count
            // A short id stands for itself only between other characters: `1` is not in `2021`.
            let isWord =
                sought.count >= 6
                || (!(found > 0 && isWordByte(small[found - 1]))
                    && !(end < small.count && isWordByte(small[end])))
            output += bytes[position..<found]
            if isWord {
                output += replacement.shown.utf8
            } else {
                output += bytes[found..<end]
            }
            position = end
        }
        if position == 0 { return text }
        output += bytes[position...]
        return String(decoding: output, as: UTF8.self)
    }

    /// Where the text begins, in one pass whatever repeats itself in it (Knuth, Morris and Pratt).
    private static func find(_ replacement: Replacement, in bytes: [UInt8], from start: Int) -> Int? {
        let sought = replacement.text
        var matched = 0
        for index in start..<bytes.count {
            while matched > 0, bytes[index] != sought[matched] { matched = replacement.borders[matched - 1] }
            if bytes[index] == sought[matched] { matched += 1 }
            if matched == sought.count { return index + 1 - matched }
        }
        return nil
    }

    /// E-mail addresses that the event names nowhere else, also in a URL.
    private static func withoutAddresses(_ text: String) -> String {
        let bytes = Array(text.utf8)
        let encoded = Array("%40".utf8)
        var output: [UInt8] = []
        var position = 0
        var index = 0
        while index < bytes.count {
            let isEncoded = bytes[index] == encoded[0] && bytes[index...].starts(with: encoded)
            guard bytes[index] == UInt8(ascii: "@") || isEncoded else {
                index += 1
                continue
            }
            var start = index
            while start > position, isAddressByte(bytes[start - 1]) { start -= 1 }
            var end = index + (isEncoded ? encoded.count : 1)
            let domain = end
            while end < bytes.count, isAddressByte(bytes[end]) { end += 1 }
            if start < index, end > domain {
                output += bytes[position..<start]
                output += nothing.utf8
            } else {
                output += bytes[position..<end]
            }
            position = end
            index = end
        }
        if position == 0 { return text }
        output += bytes[position...]
        return String(decoding: output, as: UTF8.self)
    }

    private static func lowercased(_ text: String) -> [UInt8] {
        text.utf8.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 | 0x20 : $0 }
    }

    private static func isWordByte(_ byte: UInt8) -> Bool { byte.isASCIIAlphanumeric() || byte >= 0x80 }

    private static func isAddressByte(_ byte: UInt8) -> Bool {
        isWordByte(byte) || "._%+-".utf8.contains(byte)
    }
}
