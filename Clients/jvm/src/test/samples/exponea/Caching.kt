// Bloomreach's documentation, "Customer Token Retrieval Policy".
package exponea.caching

import dev.countersign.exponea.AuthorizationProvider
import exponea.retrieveTokenAsync
import exponea.runBlocking
import kotlin.coroutines.resume
import kotlin.coroutines.suspendCoroutine

class ExampleAuthProvider : AuthorizationProvider {

    private var tokenCache: String? = null

    override fun getAuthorizationToken(): String? = runBlocking {
         if (tokenCache.isNullOrEmpty()) {
             tokenCache = suspendCoroutine { done ->
                 retrieveTokenAsync(
                     success = {token -> done.resume(token)},
                     error = {error -> done.resume(null)}
                 )
             }
         }
         return@runBlocking tokenCache
     }
}
