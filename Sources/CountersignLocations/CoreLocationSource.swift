#if canImport(CoreLocation)
    internal import CoreLocation
    internal import Foundation

    /// What Core Location says, for as long as somebody listens. The app asks the person for permission.
    final class CoreLocationSource: NSObject, CLLocationManagerDelegate {
        private let continuation: AsyncStream<Location>.Continuation

        private init(continuation: AsyncStream<Location>.Continuation) {
            self.continuation = continuation
        }

        static func locations() -> AsyncStream<Location> {
            AsyncStream { continuation in
                let task = Task { @MainActor in
                    // The manager calls back on the thread that made it, which must have a run loop.
                    let manager = CLLocationManager()
                    let source = CoreLocationSource(continuation: continuation)
                    manager.delegate = source
                    manager.startUpdatingLocation()
                    while !Task.isCancelled { try? await Task.sleep(nanoseconds: 60_000_000_000) }
                    manager.stopUpdatingLocation()
                    // The manager holds its delegate weakly.
                    withExtendedLifetime(source) {}
                }
                continuation.onTermination = { _ in task.cancel() }
            }
        }

        func locationManager(_ manager: CLLocationManager, didUpdateLocations locations: [CLLocation]) {
            for fix in locations {
                var location = Location(
                    latitude: fix.coordinate.latitude, longitude: fix.coordinate.longitude,
                    timestamp: fix.timestamp)
                location.accuracy = fix.horizontalAccuracy
                location.altitude = fix.altitude
                location.altitudeAccuracy = fix.verticalAccuracy
                location.speed = fix.speed
                location.heading = fix.course
                location.isMoving = fix.speed > 0
                continuation.yield(location)
            }
        }
    }
#endif
