/// Header fields with case-insensitive names (RFC 9110, section 5.1). Omits fields with invalid characters, so that a
/// value cannot inject another field.
package struct HeaderFields {
    package private(set) var fields: [(name: String, value: String)] = []

    package init() {}

    package subscript(name: String) -> String? {
        get { fields.first { $0.name.lowercased() == name.lowercased() }?.value }
        set {
            fields.removeAll { $0.name.lowercased() == name.lowercased() }
            guard let newValue, Self.isValid(name: name, value: newValue) else { return }
            fields.append((name, newValue))
            fields.sort { $0.name.lowercased() < $1.name.lowercased() }
        }
    }

    /// RFC 9110, section 5.5 and 5.6.2, without the bytes above ASCII.
    package static func isValid(name: String, value: String) -> Bool {
        let separators = Set("\"(),/:;<=>?@[\\]{} ".utf8)
        return !name.isEmpty
            && name.utf8.allSatisfy { (0x21...0x7E).contains($0) && !separators.contains($0) }
            && value.utf8.allSatisfy { (0x20...0x7E).contains($0) || $0 == 0x09 }
    }
}
