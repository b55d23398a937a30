package enum LogFormat: Sendable, Equatable {
    /// One JSON object per line, for programs.
    case json
    /// Aligned text for a terminal, with colours where supported.
    case text(isColored: Bool)
}
