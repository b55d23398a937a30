#if canImport(SwiftUI)
    import Countersign
    import SwiftUI

    /// A line of the list. Two notes may have the same text.
    struct Note: Identifiable {
        let id = UUID()
        let text: String
    }

    struct NotesView: View {
        let analytics: Analytics
        @State private var notes: [Note] = []
        @State private var draft = ""
        @State private var waiting = 0

        var body: some View {
            VStack {
                List(notes) { Text($0.text) }
                TextField("New note", text: $draft).onSubmit(add)
                Text("\(waiting) events wait").font(.footnote)
            }
            .padding()
            .task {
                analytics.logIn("user-1")
                while !Task.isCancelled {
                    waiting = await analytics.client.snapshot().queued
                    try? await Task.sleep(nanoseconds: 1_000_000_000)
                }
            }
        }

        private func add() {
            guard !draft.isEmpty else { return }
            notes.append(Note(text: draft))
            analytics.noteAdded(length: draft.count)
            draft = ""
        }
    }

    #if DEBUG
        struct NotesView_Previews: PreviewProvider {
            static var previews: some View {
                if let analytics = Analytics.inMemory() { NotesView(analytics: analytics) }
            }
        }
    #endif
#endif
