/// The version of the SDK in requests and logs.
package enum SDKVersion {
    package static let current = countersignVersion
}
