internal import Foundation

/// A signal of a source of locations.
enum PositioningSignal: Sendable {
    case location(Location)
    case status(PositioningStatus)
}

extension Location {
    /// Converts a location of Core Location, where negative numbers mean unknown. Nil if the coordinates are
    /// unknown.
    init?(
        latitude: Double, longitude: Double, timestamp: Date, horizontalAccuracy: Double, altitude: Double,
        verticalAccuracy: Double, speed: Double, course: Double
    ) {
        guard horizontalAccuracy >= 0 else { return nil }
        self.init(latitude: latitude, longitude: longitude, timestamp: timestamp)
        accuracy = horizontalAccuracy
        // An altitude may well be negative.
        if verticalAccuracy >= 0 {
            self.altitude = altitude
            altitudeAccuracy = verticalAccuracy
        }
        if speed >= 0 { self.speed = speed }
        if course >= 0 { heading = course }
        isMoving = speed > 0
    }
}
