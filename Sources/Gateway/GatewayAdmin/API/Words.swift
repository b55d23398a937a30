internal import GatewayModel

extension AdminRole: JSONConvertible {}
extension BucketLength: JSONConvertible {}
extension Enforcement: JSONConvertible {}
extension OAuthClient.Grant: JSONConvertible {}
