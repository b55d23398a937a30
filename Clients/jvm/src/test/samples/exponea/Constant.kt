// Bloomreach's documentation, "Android Authorization Provider".
package exponea.constant

import dev.countersign.exponea.AuthorizationProvider

class ExampleAuthProvider : AuthorizationProvider {

    override fun getAuthorizationToken(): String? {
        return "eyJ0eXAiOiJKV1Q..."
    }
}
