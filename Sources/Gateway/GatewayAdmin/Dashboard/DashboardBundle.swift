internal import CDashboard
internal import CountersignCore

/// Bundles the dashboard's modules into one file and its style sheets into the page, so that a browser loads
/// two files instead of about sixty.
///
/// The ES modules in `Sources/CShims/CDashboard/Resources` have one import a line, in the form
/// `import { … } from "./other.js";`, and export in declarations. Each module becomes a function that is called
/// once, after the modules that it imports. Comments on their own lines are left out.
enum DashboardBundle {
    static let files: BytewiseDictionary<String> = {
        var files: BytewiseDictionary<String> = [:]
        var next = countersign_dashboard_first()
        while let file = next?.pointee, let name = file.path {
            files[String(cString: name)] = String(
                decoding: UnsafeBufferPointer(start: file.bytes, count: file.size), as: UTF8.self)
            next = next?.advanced(by: 1)
        }
        return files
    }()

    private static let folder = "assets/modules/"

    /// All modules that `app.js` needs, each after its imports.
    static func script(_ files: BytewiseDictionary<String> = files) -> String {
        var text = "\"use strict\";\nconst modules = {};\n"
        var done: BytewiseSet = []
        func add(_ name: String) {
            guard done.insert(name).inserted, let source = files[folder + name] else { return }
            var exports: [Substring] = []
            var body = ""
            var isComment = false
            for line in source.split(separator: "\n", omittingEmptySubsequences: false) {
                let code = line[(line.utf8.firstIndex { $0 != UInt8(ascii: " ") } ?? line.endIndex)...]
                isComment = isComment || code.hasPrefix("/**")
                if isComment || code.hasPrefix("//") {
                    isComment = isComment && !code.hasSuffix("*/")
                } else if let (names, other) = imported(line) {
                    add(other)
                    body += "const {\(names.replacing(" as ", with: ": "))} = modules[\"\(other)\"];\n"
                } else if line.hasPrefix("export ") {
                    let declaration = line.dropFirst("export ".count)
                    exports.append(declared(declaration))
                    body += declaration + "\n"
                } else {
                    body += line + "\n"
                }
            }
            text +=
                "modules[\"\(name)\"] = (() => {\n\(body)return { \(exports.joined(separator: ", ")) };\n})();\n"
        }
        add("app.js")
        return text
    }

    private static func imported(_ line: Substring) -> (names: Substring, module: String)? {
        guard line.hasPrefix("import {"), let end = line.firstIndex(of: "}"),
            let path = line[end...].split(separator: "\"").dropFirst().first, path.hasPrefix("./")
        else { return nil }
        return (line[..<end].dropFirst("import {".count), String(path.dropFirst(2)))
    }

    private static func declared(_ declaration: Substring) -> Substring {
        let words: BytewiseSet = ["async", "function", "class", "const", "let"]
        let name = declaration.split(separator: " ").first { !words.contains(String($0)) } ?? ""
        return Substring(name.utf8.prefix { $0.isASCIIAlphanumeric(or: "_$") })
    }

    /// The style sheets in the order of the page. Print style sheets are wrapped in `@media print`.
    static func style(_ files: BytewiseDictionary<String> = files) -> String {
        links(files).reduce(into: "") { text, link in
            let sheet = files[link.path] ?? ""
            text += link.isPrint ? "@media print {\n\(sheet)}\n" : sheet
        }
    }

    private static func links(_ files: BytewiseDictionary<String>) -> [(path: String, isPrint: Bool)] {
        (files["index.html"] ?? "").split(separator: "\n").filter { $0.contains("rel=\"stylesheet\"") }
            .compactMap { line in
                let parts = line.split(separator: "\"")
                return parts.first { $0.hasPrefix("/admin/") }.map {
                    (String($0.dropFirst("/admin/".count)), parts.contains("print"))
                }
            }
    }

    static func page(_ files: BytewiseDictionary<String> = files, script: String, style: String) -> String {
        var lines: [Substring] = []
        var isStyled = false
        for line in (files["index.html"] ?? "").split(separator: "\n", omittingEmptySubsequences: false) {
            if line.contains("rel=\"stylesheet\"") {
                if !isStyled { lines.append("  <style>\(style)</style>") }
                isStyled = true
            } else if line.contains("<script ") {
                lines.append("  <script type=\"module\" src=\"/admin/\(script)\"></script>")
            } else if line.contains("rel=\"icon\"") {
                lines.append("  <link rel=\"icon\" href=\"\(icon(files))\" type=\"image/svg+xml\">")
            } else {
                lines.append(line)
            }
        }
        return lines.joined(separator: "\n")
    }

    private static func icon(_ files: BytewiseDictionary<String>) -> String {
        let text = (files["assets/icons/favicon.svg"] ?? "").replacing("\n", with: "").replacing(
            "\"", with: "'")
        return "data:image/svg+xml,"
            + text.replacing("%", with: "%25").replacing("#", with: "%23")
            .replacing("<", with: "%3C").replacing(">", with: "%3E")
    }
}
