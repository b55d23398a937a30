package braze;

import dev.countersign.braze.BrazeSdkAuthenticationErrorEvent;

/** A stand-in for the app's backend. */
public final class Backend {
    private Backend() {}

    public static String getNewTokenSomehow(BrazeSdkAuthenticationErrorEvent error) {
        return System.getenv("STAND_NEW_USER");
    }
}
