/// The version that the SDK names itself by.
package enum SDKVersion {
    package static let current = countersignVersion
}
