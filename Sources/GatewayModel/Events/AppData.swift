/// What keeps data of apps outside the directory of apps, and can remove that of one.
package protocol AppData: Sendable {
    /// Removes everything that is kept of an app, a bounded step at a time so that nobody else waits long, and returns when
    /// nothing is left. It may be asked for again, after a crash too. Not for the threads that serve requests. Throws
    /// `storage`.
    func erase(appID: String) throws(GatewayError)
}
