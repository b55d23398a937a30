#if os(tvOS) || os(watchOS) || os(visionOS)
    // Not tested on other systems. tvOS has no permanent storage for apps, which the queue needs.
    #error("Countersign is for iOS, macOS and Linux: link it for these platforms only")
#endif
