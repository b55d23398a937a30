package braze;

import static braze.Backend.getNewTokenSomehow;

import dev.countersign.braze.Braze;
import dev.countersign.braze.BrazeConfig;

/** Braze's documentation, "SDK Authentication", tab Java. The API key and the endpoint are in braze.xml. */
public final class JavaSamples implements BrazeSamples {
    private Object getContext() {
        return this;
    }

    @Override
    public void configure() {
        BrazeConfig.Builder brazeConfigBuilder = new BrazeConfig.Builder()
            .setIsSdkAuthenticationEnabled(true);
        Braze.configure(this, brazeConfigBuilder.build());
    }

    @Override
    public void changeUser() {
        Braze.getInstance(this).changeUser("NEW-USER-ID", "JWT-TOKEN-FROM-SERVER");
    }

    @Override
    public void setSignature() {
        Braze.getInstance(this).setSdkAuthenticationSignature("NEW-JWT-TOKEN-FROM-SERVER");
    }

    @Override
    public void subscribe() {
        Braze.getInstance(this).subscribeToSdkAuthenticationFailures(error -> {
            // TODO: Optionally log to your error-reporting service
            // TODO: Check if the error user matches the currently logged-in user
            String newToken = getNewTokenSomehow(error);
            Braze.getInstance(getContext()).setSdkAuthenticationSignature(newToken);
        });
    }
}
