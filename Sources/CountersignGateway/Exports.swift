// What the public API of the gateway is about, for those who import the gateway alone.
@_exported public import GatewayModel
@_exported public import GatewayStorage
@_exported public import GatewayTokens
