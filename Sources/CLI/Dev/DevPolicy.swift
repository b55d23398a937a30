internal import CountersignCore
internal import Foundation
internal import GatewayModel

/// A file with an app's policy and enforcement, in the admin API's format, applied whenever it changes.
struct DevPolicy: Sendable {
    let path: String
    let admin: LocalAdmin

    /// Applies the file now and after each change until the task is cancelled, and reports the results.
    func watch(_ say: (String) -> Void) async {
        var last: String??
        while !Task.isCancelled {
            if let line = await applyIfChanged(&last) { say(line) }
            try? await Task.sleep(for: .milliseconds(500))
        }
    }

    /// Applies the file if its content differs from `last`. Returns a message; nil if nothing has changed.
    func applyIfChanged(_ last: inout String??) async -> String? {
        let text = try? String(contentsOfFile: path, encoding: .utf8)
        guard last != .some(text) else { return nil }
        last = .some(text)
        return await apply(text)
    }

    /// Applies the content. Returns a line for the developer. Invalid content changes nothing.
    func apply(_ text: String?) async -> String {
        let shown = TerminalText.safe(path)
        guard let text else { return "\(shown) cannot be read; nothing was changed." }
        guard case .object(var members)? = JSONValue(parsing: Array(text.utf8)) else {
            return "\(shown) is not a JSON object; nothing was changed."
        }
        let enforcement = members.removeValue(forKey: "enforcement")
        if let enforcement, enforcement.text.flatMap(Enforcement.init(rawValue:)) == nil {
            return "\(shown) is invalid: enforcement is disabled, optional or required."
        }
        do {
            let policy = members
            if !policy.isEmpty {
                _ = try await admin.change("apps", DevFolder.appID, "policy") { $0.merge(policy) { $1 } }
            }
            if let enforcement {
                _ = try await admin.change("apps", DevFolder.appID, "enforcement") {
                    $0["state"] = enforcement
                }
            }
            return
                "\(shown) applied: \((policy.keys + (enforcement == nil ? [] : ["enforcement"])).sorted().joined(separator: ", "))."
        } catch {
            return "\(shown) is invalid: \((error as? CommandError)?.reason ?? "\(error)")."
        }
    }
}
