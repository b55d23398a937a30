internal import Foundation

/// What a source of locations says.
enum PositioningSignal: Sendable {
    case location(Location)
    case status(PositioningStatus)
}

extension Location {
    /// A location in the words of Core Location, where a negative number stands for what is not known. Nil if
    /// that is the place.
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
