/// The version of this build. The SDK, the gateway and the command line are released together.
package let countersignVersion = "0.1.0"
