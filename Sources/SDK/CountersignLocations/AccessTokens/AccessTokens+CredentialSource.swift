/// One access token for the records of all users.
extension AccessTokens: CredentialSource {
    package nonisolated var isRenewing: Bool { true }
    package nonisolated var remedy: String? { nil }

    package func credential(
        for owner: UserKey, replacing rejected: Int?,
        post: @escaping @Sendable (@escaping CredentialAction) -> Void
    ) async -> CredentialDecision {
        await authorize(rejected: rejected)
    }

    package func accepted(_ credential: Credential, of owner: UserKey) {
        accepted(generation: credential.generation)
    }

    package func removeAll() async {
        await forget()
    }
}
