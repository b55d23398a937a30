/// How a line of the log looks.
package enum LogFormat: Sendable, Equatable {
    /// One JSON object per line, for programs.
    case json
    /// Aligned text for a person at a terminal, with colours where the terminal has them.
    case text(isColored: Bool)
}
