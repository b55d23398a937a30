/// The app's current user, and the identity to write before the user's events.
struct CurrentUser {
    private(set) var id: String?
    /// The number of changes by the app, to distinguish changes made on two threads.
    private(set) var revision = 0
    /// The revision at which all data was last removed.
    private(set) var wipeRevision = 0
    private(set) var identity: [UInt8]?
    private var identityRevision = 0
    private var writtenRevision = 0

    init(id: String?) {
        self.id = id
    }

    /// Compares by bytes (RFC 7519, section 2), because `String ==` treats some different ids as equal.
    func isUser(_ other: String?) -> Bool {
        other.map { Array($0.utf8) } == id.map { Array($0.utf8) }
    }

    mutating func set(_ userID: String?) {
        id = userID
        revision += 1
    }

    mutating func wipe() {
        set(nil)
        wipeRevision = revision
    }

    mutating func setIdentity(_ bytes: [UInt8]?) {
        identity = bytes
        identityRevision += 1
    }

    /// Nil if `identity` was written to its file.
    var unwrittenRevision: Int? { identityRevision > writtenRevision ? identityRevision : nil }

    mutating func wrote(_ revision: Int) { writtenRevision = revision }
}
