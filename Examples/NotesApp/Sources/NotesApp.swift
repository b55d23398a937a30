#if canImport(SwiftUI)
    import Countersign
    import SwiftUI

    @main
    struct NotesApp: App {
        @State private var analytics = Self.start()

        var body: some Scene {
            WindowGroup {
                if let analytics {
                    NotesView(analytics: analytics)
                } else {
                    Text("Set COUNTERSIGN_URL and COUNTERSIGN_WRITE_KEY in the scheme.")
                }
            }
        }

        private static func start() -> Analytics? {
            let environment = ProcessInfo.processInfo.environment
            guard let endpoint = environment["COUNTERSIGN_URL"].flatMap(URL.init(string:)),
                let writeKey = environment["COUNTERSIGN_WRITE_KEY"]
            else { return nil }
            return try? Analytics(endpoint: endpoint, writeKey: writeKey) { userID in
                // Requests a token from your backend; see ../TokenBackend.
                struct Answer: Decodable { let token: String }
                var url = URLComponents(string: "http://127.0.0.1:8000/token")
                url?.queryItems = [URLQueryItem(name: "user", value: userID)]
                guard let url = url?.url else { throw URLError(.badURL) }
                let (body, _) = try await URLSession.shared.data(from: url)
                return try JSONDecoder().decode(Answer.self, from: body).token
            }
        }
    }
#else
    @main
    struct NotesApp {
        static func main() { print("This app needs SwiftUI: open NotesApp.xcodeproj in Xcode on a Mac.") }
    }
#endif
