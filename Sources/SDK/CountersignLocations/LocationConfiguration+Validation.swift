internal import CountersignCore
internal import CountersignTransport
internal import Foundation

extension LocationConfiguration {
    /// The key is constant, because the URL and the content of uploads may change.
    var folder: InstanceFolder {
        InstanceFolder(name: instanceName, dataDirectory: dataDirectory, key: "locations")
    }

    var destinationSettings: LocationDestination.Settings {
        LocationDestination.Settings(
            http: http, refreshStatuses: authorization.refreshStatuses, userAgent: context.userAgent)
    }

    func validate() throws(CountersignError) {
        func require(_ condition: Bool, _ detail: String) throws(CountersignError) {
            guard condition else { throw CountersignError(.invalidConfiguration, detail) }
        }
        try require(
            http.url.isEmpty || http.endpoint != nil, "http.url must be an http or https URL with a host")
        try require(
            ["POST", "PUT", "PATCH", "OPTIONS"].contains(http.method.uppercased()),
            "http.method must be POST, PUT, PATCH or OPTIONS")
        try require(http.timeout > 0, "http.timeout must be above 0")
        for headers in [http.headers, authorization.refreshHeaders ?? [:]] {
            for (name, value) in headers {
                try require(
                    HeaderFields.isValid(name: name, value: value),
                    "\(name) cannot be a header field (RFC 9110)")
            }
        }
        if let text = authorization.accessToken, !text.isEmpty {
            try require(
                SignedToken.accessToken(text) != nil, "accessToken must be printable ASCII of up to 16 KiB")
            try require(
                SignedToken.accessToken(text, strategy: authorization.strategy) != nil,
                AuthorizationStrategy.malformedToken)
        }
    }
}

extension AuthorizationConfiguration {
    /// Warns if refresh requests would not carry the refresh token.
    func warnAboutPayload(log: CountersignLog?) {
        func names(_ value: JSONValue) -> Bool {
            switch value {
            case .string(let text): text.contains("{refreshToken}")
            case .array(let elements): elements.contains(where: names)
            case .object(let members): members.values.contains(where: names)
            default: false
            }
        }
        guard let refreshPayload = refreshPayload?.limited(), !refreshPayload.isEmpty,
            !refreshPayload.values.contains(where: names)
        else { return }
        log?(
            .warning,
            "no field of refreshPayload has {refreshToken}, so requests would have no refresh token", [:])
    }
}
