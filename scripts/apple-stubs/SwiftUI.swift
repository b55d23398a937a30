@MainActor @preconcurrency public protocol PreviewProvider {
    associatedtype Previews: View
    @ViewBuilder @MainActor @preconcurrency static var previews: Previews { get }
}
public struct OptionalContent<Wrapped: View>: PV {}
extension ViewBuilder {
    public static func buildIf<C: View>(_ content: C?) -> OptionalContent<C> { fatalError() }
}
extension List {
    @MainActor @preconcurrency public init<Data: RandomAccessCollection>(
        _ data: Data, @ViewBuilder rowContent: @escaping (Data.Element) -> C
    ) where Data.Element: Identifiable {}
}
public struct CGFloat: Sendable {
    public static let infinity = CGFloat()
}
public struct Alignment: Sendable {
    public static let leading = Alignment()
    public static let center = Alignment()
}
public protocol TextSelectability {}
public struct EnabledTextSelectability: TextSelectability {}
extension TextSelectability where Self == EnabledTextSelectability {
    public static var enabled: EnabledTextSelectability { EnabledTextSelectability() }
}
public struct ScrollView<C: View>: PV {
    nonisolated public init(@ViewBuilder content: () -> C) {}
}
extension Font {
    public enum TextStyle: Sendable { case body, footnote }
    public enum Design: Sendable { case monospaced }
    public static func system(_ style: TextStyle, design: Design) -> Font { Font() }
}
extension View {
    @available(iOS 15.0, macOS 12.0, *)
    nonisolated public func textSelection<S: TextSelectability>(_ selectability: S) -> some View { self }
    nonisolated public func frame(
        minWidth: CGFloat? = nil, maxWidth: CGFloat? = nil, alignment: Alignment = .center
    ) -> some View { self }
}
