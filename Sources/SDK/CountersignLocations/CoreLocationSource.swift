#if canImport(CoreLocation)
    internal import CoreLocation
    internal import Foundation

    /// The updates of Core Location, until its stream ends. The app requests permission from the user.
    final class CoreLocationSource: NSObject, CLLocationManagerDelegate {
        private let continuation: AsyncStream<PositioningSignal>.Continuation

        private init(continuation: AsyncStream<PositioningSignal>.Continuation) {
            self.continuation = continuation
        }

        static func signals(_ settings: LocationConfiguration.Positioning) -> AsyncStream<PositioningSignal> {
            AsyncStream { continuation in
                let task = Task { @MainActor in
                    // The manager calls back on the thread that created it, which must have a run loop.
                    let manager = CLLocationManager()
                    let source = CoreLocationSource(continuation: continuation)
                    manager.delegate = source
                    manager.desiredAccuracy =
                        settings.desiredAccuracy > 0 ? settings.desiredAccuracy : kCLLocationAccuracyBest
                    manager.distanceFilter =
                        settings.distanceFilter > 0 ? settings.distanceFilter : kCLDistanceFilterNone
                    #if os(iOS)
                        manager.allowsBackgroundLocationUpdates = BackgroundModes.allowLocations(
                            Bundle.main.infoDictionary)
                        // A pause by the system ends recording until the app is opened again.
                        manager.pausesLocationUpdatesAutomatically = false
                    #endif
                    manager.startUpdatingLocation()
                    while !Task.isCancelled { try? await Task.sleep(nanoseconds: 60_000_000_000) }
                    manager.stopUpdatingLocation()
                    // The manager has a weak reference to its delegate.
                    withExtendedLifetime(source) {}
                }
                continuation.onTermination = { _ in task.cancel() }
            }
        }

        func locationManager(_ manager: CLLocationManager, didUpdateLocations locations: [CLLocation]) {
            for fix in locations {
                let location = Location(
                    latitude: fix.coordinate.latitude, longitude: fix.coordinate.longitude,
                    timestamp: fix.timestamp, horizontalAccuracy: fix.horizontalAccuracy,
                    altitude: fix.altitude, verticalAccuracy: fix.verticalAccuracy, speed: fix.speed,
                    course: fix.course)
                if let location { continuation.yield(.location(location)) }
            }
        }

        func locationManager(_ manager: CLLocationManager, didFailWithError error: any Error) {
            report(manager, errorCode: (error as? CLError)?.code.rawValue ?? -1)
        }

        func locationManagerDidChangeAuthorization(_ manager: CLLocationManager) {
            report(manager, errorCode: nil)
        }

        private func report(_ manager: CLLocationManager, errorCode: Int?) {
            continuation.yield(
                .status(
                    PositioningStatus(
                        authorization: .init(status: manager.authorizationStatus.rawValue),
                        isPrecise: manager.accuracyAuthorization == .fullAccuracy, errorCode: errorCode)))
        }
    }
#endif
