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
