// Bloomreach's documentation, "Asynchronous Authorization Provider Implementation".
package exponea.asynchronous

import dev.countersign.exponea.AuthorizationProvider
import exponea.retrieveTokenAsync
import exponea.runBlocking
import kotlin.coroutines.resume
import kotlin.coroutines.suspendCoroutine

class ExampleAuthProvider : AuthorizationProvider {
    override fun getAuthorizationToken(): String? = runBlocking {
        return@runBlocking suspendCoroutine { done ->
            retrieveTokenAsync(
                    success = {token -> done.resume(token)},
                    error = {error -> done.resume(null)}
            )
        }
    }
}
