#if canImport(SwiftUI)
    public import SwiftUI

    /// Shows the state of a client, updated each second. For builds that are not shipped.
    public struct CountersignInspectorView: View {
        private let inspector: CountersignInspector
        @State private var text = ""

        /// Makes a view.
        ///
        /// - Parameter inspector: The inspector of the client.
        public init(_ inspector: CountersignInspector) {
            self.inspector = inspector
        }

        // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
        public var body: some View {
            ScrollView {
                Text(text)
                    .font(.system(.footnote, design: .monospaced))
                    .textSelection(.enabled)
                    .frame(maxWidth: .infinity, alignment: .leading)
                    .padding()
            }
            .task {
                for await inspection in inspector.inspections() { text = "\(inspection)" }
            }
        }
    }
#endif
