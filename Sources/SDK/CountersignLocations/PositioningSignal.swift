internal import Foundation

enum PositioningSignal: Sendable {
    case location(Location)
    case status(PositioningStatus)
}

extension Location {
    /// Negative numbers mean unknown in Core Location. Nil if the coordinates are unknown.
    init?(
        latitude: Double, longitude: Double, timestamp: Date, horizontalAccuracy: Double, altitude: Double,
        verticalAccuracy: Double, speed: Double, course: Double
    ) {
        guard horizontalAccuracy >= 0 else { return nil }
        self.init(latitude: latitude, longitude: longitude, timestamp: timestamp)
        accuracy = horizontalAccuracy
        // The altitude itself may be negative.
        if verticalAccuracy >= 0 {
            self.altitude = altitude
            altitudeAccuracy = verticalAccuracy
        }
        if speed >= 0 { self.speed = speed }
        if course >= 0 { heading = course }
        isMoving = speed > 0
    }
}
