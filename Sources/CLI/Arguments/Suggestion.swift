enum Suggestion {
    /// The candidate with the smallest edit distance, up to 1 or a third of the length of `word`. Otherwise the first
    /// candidate that is the beginning of `word` or begins with `word`.
    static func nearest(to word: String, among candidates: [String]) -> String? {
        let limit = max(1, word.count / 3)
        return candidates.map { (candidate: $0, distance: distance(from: word, to: $0)) }
            .filter { $0.distance <= limit }
            .min { ($0.distance, $0.candidate) < ($1.distance, $1.candidate) }?
            .candidate
            ?? candidates.first {
                min($0.count, word.count) > 2 && ($0.hasPrefix(word) || word.hasPrefix($0))
            }
    }

    /// The edit distance (optimal string alignment).
    static func distance(from source: String, to target: String) -> Int {
        let source = Array(source)
        let target = Array(target)
        var beforeLast = [Int](repeating: 0, count: target.count + 1)
        var last = Array(0...target.count)
        for row in 0..<source.count {
            var current = [Int](repeating: row + 1, count: target.count + 1)
            for column in 0..<target.count {
                let isSame = source[row] == target[column]
                var best = min(last[column + 1] + 1, current[column] + 1, last[column] + (isSame ? 0 : 1))
                if row > 0, column > 0, source[row] == target[column - 1], source[row - 1] == target[column] {
                    best = min(best, beforeLast[column - 1] + 1)
                }
                current[column + 1] = best
            }
            beforeLast = last
            last = current
        }
        return last[target.count]
    }
}
