extension Date {
    public static func += (date: inout Date, interval: TimeInterval) {}
}
