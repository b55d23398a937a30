package braze

import braze.Backend.getNewTokenSomehow
import dev.countersign.braze.Braze
import dev.countersign.braze.BrazeConfig
import dev.countersign.braze.BrazeSdkAuthenticationErrorEvent

/**
 * Braze's documentation, "SDK Authentication", tab KOTLIN. In the documentation the first line of `configure` is
 * a Java declaration, which is not valid Kotlin. It is corrected here.
 */
class KotlinSamples : BrazeSamples {
    private fun getContext(): Any = this

    override fun configure() {
        val brazeConfigBuilder: BrazeConfig.Builder = BrazeConfig.Builder()
            .setIsSdkAuthenticationEnabled(true)
        Braze.configure(this, brazeConfigBuilder.build())
    }

    override fun changeUser() {
        Braze.getInstance(this).changeUser("NEW-USER-ID", "JWT-TOKEN-FROM-SERVER")
    }

    override fun setSignature() {
        Braze.getInstance(this).setSdkAuthenticationSignature("NEW-JWT-TOKEN-FROM-SERVER")
    }

    override fun subscribe() {
        Braze.getInstance(this).subscribeToSdkAuthenticationFailures({ error: BrazeSdkAuthenticationErrorEvent ->
            // TODO: Optionally log to your error-reporting service
            // TODO: Check if the `user_id` within the `error` matches the currently logged-in user
            val newToken: String = getNewTokenSomehow(error)
            Braze.getInstance(getContext()).setSdkAuthenticationSignature(newToken)
        })
    }
}
