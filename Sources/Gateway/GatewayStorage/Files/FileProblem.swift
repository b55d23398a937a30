internal import CountersignCore
internal import Foundation
internal import GatewayModel

package enum FileProblem {
    /// The system's description of an error, without Foundation's codes.
    package static func text(_ error: any Error) -> String {
        if let error = error as? GatewayError { return error.reason }
        guard error is CocoaError || error is POSIXError else { return "\(error)" }
        let cause = (error as NSError).userInfo[NSUnderlyingErrorKey] as? any Error
        let system = (cause ?? error) as NSError
        guard system.domain == NSPOSIXErrorDomain else { return error.localizedDescription }
        return String(cString: strerror(Int32(system.code)))
    }
}
