#if os(tvOS) || os(watchOS) || os(visionOS)
    // It has not been tested elsewhere; tvOS also gives an app no storage that lasts, which the SDK's promise needs.
    #error("Countersign is for iOS, macOS and Linux: link it for these platforms only")
#endif
