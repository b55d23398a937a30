@_exported public import GatewayIngest
// Re-exported, because the public API of this module uses types of these modules.
@_exported public import GatewayModel
@_exported public import GatewayStorage
