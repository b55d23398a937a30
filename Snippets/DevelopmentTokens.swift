// Get tokens from the backend of `countersign dev`, until your own backend signs them.
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Requests a token from the backend of `countersign dev`.
func developmentToken(for userID: String) async throws -> String {
    struct Answer: Decodable { let token: String }
    var url = URLComponents(string: "http://127.0.0.1:8000/token")
    url?.queryItems = [URLQueryItem(name: "user", value: userID)]
    guard let url = url?.url else { throw URLError(.badURL) }
    let (body, _) = try await URLSession.shared.data(from: url)
    return try JSONDecoder().decode(Answer.self, from: body).token
}

print(try await developmentToken(for: "user-1"))
