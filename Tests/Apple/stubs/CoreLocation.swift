// swift-format-ignore-file
public import Foundation
public typealias CLLocationDegrees = Double
public struct CLLocationCoordinate2D { public var latitude: Double; public var longitude: Double }
open class CLLocation: NSObject, @unchecked Sendable { open var coordinate: CLLocationCoordinate2D { fatalError() }; open var timestamp: Date { Date() }; open var horizontalAccuracy: Double { 0 }; open var altitude: Double { 0 }; open var verticalAccuracy: Double { 0 }; open var speed: Double { 0 }; open var course: Double { 0 } }
public protocol CLLocationManagerDelegate: NSObjectProtocol { func locationManager(_ manager: CLLocationManager, didUpdateLocations locations: [CLLocation]) }
open class CLLocationManager: NSObject { weak open var delegate: (any CLLocationManagerDelegate)?; open func startUpdatingLocation() {}; open func stopUpdatingLocation() {} }
public let kCLLocationAccuracyBest: Double = -1
public let kCLDistanceFilterNone: Double = -1
public enum CLAuthorizationStatus: Int32, Sendable {
    case notDetermined = 0, restricted, denied, authorizedAlways, authorizedWhenInUse
}
@available(iOS 14.0, macOS 11.0, *)
public enum CLAccuracyAuthorization: Int, Sendable { case fullAccuracy, reducedAccuracy }
public struct CLError: Error, Hashable {
    public struct Code: RawRepresentable, Hashable, Sendable {
        public let rawValue: Int
        public init(rawValue: Int) { self.rawValue = rawValue }
    }
    public var code: Code { Code(rawValue: 0) }
}
extension CLLocationManager {
    public var desiredAccuracy: Double { get { 0 } set {} }
    public var distanceFilter: Double { get { 0 } set {} }
    @available(iOS 9.0, *) @available(macOS, unavailable)
    public var allowsBackgroundLocationUpdates: Bool { get { false } set {} }
    public var pausesLocationUpdatesAutomatically: Bool { get { true } set {} }
    @available(iOS 14.0, macOS 11.0, *)
    public var authorizationStatus: CLAuthorizationStatus { .notDetermined }
    @available(iOS 14.0, macOS 11.0, *)
    public var accuracyAuthorization: CLAccuracyAuthorization { .fullAccuracy }
}
// Optional requirements, which a protocol without Objective-C does not have.
extension CLLocationManagerDelegate {
    public func locationManager(_ manager: CLLocationManager, didFailWithError error: any Error) {}
    @available(iOS 14.0, macOS 11.0, *)
    public func locationManagerDidChangeAuthorization(_ manager: CLLocationManager) {}
}
