package import CountersignCore
internal import Foundation

/// The facts about the app and its device that each event carries.
///
/// They are stored with each event, so a resent event is unchanged. `library`, the name and version of the SDK, is
/// always included. The event format documents the members.
public struct EventContext: Sendable {
    /// A part of the context that can be left out.
    public enum Part: Sendable, CaseIterable {
        /// Version and build of the app.
        case app
        /// Name and version of the operating system.
        case os
        /// The device's model, such as `iPhone15,2`; on macOS and Linux the processor's architecture.
        case device
        /// Language and region, such as `de-DE`.
        case locale
    }

    /// The parts that events carry. Default: all.
    public var parts = Set(Part.allCases)
    /// The app's version. Default: `CFBundleShortVersionString` of the main bundle; nil outside of a bundle.
    public var appVersion = Self.bundled("CFBundleShortVersionString")
    /// The app's build. Default: `CFBundleVersion` of the main bundle; nil outside of a bundle.
    public var appBuild = Self.bundled("CFBundleVersion")
    package var library = "countersign-swift"

    /// Makes the default context.
    public init() {}

    /// Reads `{"parts":[…],"appVersion":…,"appBuild":…,"library":…}`. Missing members have their defaults.
    package init(_ members: JSONObject) throws(CountersignError) {
        func wrong(_ detail: String) -> CountersignError {
            CountersignError(.invalidConfiguration, "context\(detail)")
        }
        for (name, value) in members where value != .null {
            switch (name, value) {
            case ("appVersion", .string(let text)): appVersion = text
            case ("appBuild", .string(let text)): appBuild = text
            case ("library", .string(let text)): library = text
            case ("parts", .array(let elements)):
                let found = Part.allCases.filter { elements.contains(.string("\($0)")) }
                guard found.count == elements.count else {
                    throw wrong(".parts must be a list of app, os, device and locale")
                }
                parts = Set(found)
            default: throw wrong(".\(name) must be one of parts, appVersion, appBuild and library")
            }
        }
    }

    private static func bundled(_ key: String) -> String? {
        Bundle.main.object(forInfoDictionaryKey: key) as? String
    }

    /// Each fact's path in `context`, its name in `properties`, and its value.
    private var facts: [(path: [String], property: String, value: String)] {
        var facts = [
            (["library", "name"], "sdk", library),
            (["library", "version"], "sdk_version", SDKVersion.current),
        ]
        func add(_ part: Part, _ path: [String], _ property: String, _ value: String?) {
            guard parts.contains(part), let value, !value.isEmpty else { return }
            facts.append((path, property, value))
        }
        add(.app, ["app", "version"], "app_version", appVersion)
        add(.app, ["app", "build"], "app_build", appBuild)
        add(.os, ["os", "name"], "os_name", Device.system.name)
        add(.os, ["os", "version"], "os_version", Device.system.version)
        add(.device, ["device", "model"], "device_model", Device.model)
        add(.locale, ["locale"], "locale", Device.locale)
        return facts
    }

    package var json: JSONObject {
        var members: JSONObject = [:]
        for (path, _, value) in facts {
            guard path.count == 2 else {
                members[path[0]] = .string(value)
                continue
            }
            var group = members[path[0]]?.object ?? [:]
            group[path[1]] = .string(value)
            members[path[0]] = .object(group)
        }
        return members
    }

    /// The facts as properties, for protocols whose events have no `context`.
    package var properties: JSONObject {
        JSONObject(Dictionary(facts.map { ($0.property, .string($0.value)) }) { first, _ in first })
    }

    /// `User-Agent` (RFC 9110, section 10.1.5): the SDK, and the app's version as `app/2.1`.
    package var userAgent: String {
        let sdk = "\(library)/\(SDKVersion.current)"
        guard parts.contains(.app), let appVersion, !appVersion.isEmpty,
            appVersion.utf8.allSatisfy({ $0.isASCIIAlphanumeric(or: "!#$%&'*+-.^_`|~") })
        else { return sdk }
        return "\(sdk) app/\(appVersion)"
    }
}

private enum Device {
    static let system: (name: String, version: String) = {
        #if canImport(Darwin)
            let version = ProcessInfo.processInfo.operatingSystemVersion
            #if os(macOS)
                let name = "macOS"
            #else
                let name = "iOS"
            #endif
            return (name, "\(version.majorVersion).\(version.minorVersion).\(version.patchVersion)")
        #else
            let file = FileManager.default.contents(atPath: "/etc/os-release") ?? Data()
            let lines = String(decoding: file, as: UTF8.self).split(separator: "\n")
            func value(_ name: String) -> String? {
                lines.first { $0.hasPrefix(name) }?.dropFirst(name.utf8.count).trimmingCharacters(in: ["\""])
            }
            return (value("NAME=") ?? "Linux", value("VERSION_ID=") ?? kernel { $0.release })
        #endif
    }()

    static let model: String = {
        let environment = ProcessInfo.processInfo.environment
        return environment["SIMULATOR_MODEL_IDENTIFIER"] ?? kernel { $0.machine }
    }()

    static let locale: String? = {
        #if canImport(Darwin)
            let name = Locale.current.identifier
        #else
            let environment = ProcessInfo.processInfo.environment
            let names = ["LC_ALL", "LC_MESSAGES", "LANG"].compactMap { environment[$0] }
            let name = names.first { !$0.isEmpty } ?? ""
        #endif
        let tag = name.prefix { $0 != "." && $0 != "@" }.replacingOccurrences(of: "_", with: "-")
        return tag == "C" || tag == "POSIX" ? nil : tag
    }()

    private static func kernel<Text>(_ member: (utsname) -> Text) -> String {
        var facts = utsname()
        guard uname(&facts) == 0 else { return "" }
        return withUnsafeBytes(of: member(facts)) { bytes in
            String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
    }
}
