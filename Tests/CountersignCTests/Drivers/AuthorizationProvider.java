/** As com.exponea.sdk.services.AuthorizationProvider. */
public interface AuthorizationProvider {
    String getAuthorizationToken();
}
