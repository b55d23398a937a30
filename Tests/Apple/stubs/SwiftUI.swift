// swift-format-ignore-file
@_exported import Foundation
@MainActor @preconcurrency public protocol View { associatedtype Body: View; @ViewBuilder @MainActor @preconcurrency var body: Body { get } }
extension Never: View { public var body: Never { fatalError() } }
public protocol PV: View where Body == Never {}
extension PV { public var body: Never { fatalError() } }
@resultBuilder public struct ViewBuilder { public static func buildBlock<each C: View>(_ c: repeat each C) -> TupleView<(repeat each C)> { fatalError() }
  public static func buildBlock<C: View>(_ c: C) -> C { c }
  public static func buildEither<A: View, B: View>(first: A) -> Cond<A, B> { fatalError() }; public static func buildEither<A: View, B: View>(second: B) -> Cond<A, B> { fatalError() }; public static func buildExpression<C: View>(_ c: C) -> C { c } }
public struct TupleView<T>: PV {}
public struct Cond<A, B>: PV {}
@MainActor @preconcurrency public protocol Scene { associatedtype Body: Scene; @SceneBuilder @MainActor @preconcurrency var body: Body { get } }
extension Never: Scene {}
@resultBuilder public struct SceneBuilder { public static func buildBlock<C: Scene>(_ c: C) -> C { c }; public static func buildExpression<C: Scene>(_ c: C) -> C { c } }
public struct WindowGroup<C: View>: Scene { nonisolated public init(@ViewBuilder content: () -> C) {}; public var body: Never { fatalError() } }
@MainActor @preconcurrency public protocol App { associatedtype Body: Scene; @SceneBuilder @MainActor @preconcurrency var body: Body { get }; @MainActor @preconcurrency init() }
extension App { @MainActor @preconcurrency public static func main() {} }
@propertyWrapper public struct State<V> { public init(wrappedValue: V) {}; public var wrappedValue: V { get { fatalError() } nonmutating set {} }; public var projectedValue: Binding<V> { fatalError() } }
extension State: Sendable where V: Sendable {}
@propertyWrapper public struct Binding<V> { public init(get: @escaping () -> V) {}; public var wrappedValue: V { get { fatalError() } nonmutating set {} }; public var projectedValue: Binding<V> { self } }
public struct Text: PV { public init<S: StringProtocol>(_ s: S) {} }
public struct VStack<C: View>: PV { public init(@ViewBuilder content: () -> C) {} }
public struct List<C: View>: PV { public init<R: RandomAccessCollection, ID>(_ d: R, id: KeyPath<R.Element, ID>, @ViewBuilder rowContent: @escaping (R.Element) -> C) {} }
public struct TextField<L>: PV { nonisolated public init<S: StringProtocol>(_ t: S, text: Binding<String>) where L == Text {} }
public struct Font: Sendable { public static let footnote = Font() }
extension View { nonisolated public func onSubmit(_ a: @escaping () -> Void) -> some View { self }
  nonisolated public func font(_ f: Font?) -> some View { self }
  nonisolated public func padding() -> some View { self }
  nonisolated public func task(priority: TaskPriority = .userInitiated, @_inheritActorContext _ a: @escaping @Sendable () async -> Void) -> some View { self } }
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
