package enum SDKVersion {
    package static let current = countersignVersion
}
