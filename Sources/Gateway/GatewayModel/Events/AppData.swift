/// A store of app data outside of the app directory, which can delete the data of one app.
package protocol AppData: Sendable {
    /// Deletes the app's data in bounded steps that do not block other writers for long. Callers may repeat the
    /// call, also after a crash. Must not run on the threads that serve requests. Throws `storage`.
    func erase(appID: String) throws(GatewayError)
}
