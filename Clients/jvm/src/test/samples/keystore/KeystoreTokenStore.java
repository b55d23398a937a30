package keystore;

import android.content.Context;
import android.content.SharedPreferences;
import android.security.keystore.KeyGenParameterSpec;
import android.security.keystore.KeyProperties;
import android.util.Base64;
import dev.countersign.TokenStore;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.Key;
import java.security.KeyStore;
import javax.crypto.Cipher;
import javax.crypto.KeyGenerator;
import javax.crypto.spec.GCMParameterSpec;

/** Stores tokens in the app's preferences, encrypted with a key that never leaves Android's Keystore. */
public final class KeystoreTokenStore implements TokenStore {
    private static final String PROVIDER = "AndroidKeyStore";
    private static final String NAME = "countersign-tokens";
    private static final int NONCE_BYTES = 12;

    private final SharedPreferences preferences;

    public KeystoreTokenStore(Context context) {
        preferences = context.getSharedPreferences(NAME, Context.MODE_PRIVATE);
    }

    @Override
    public String token(String userId) throws GeneralSecurityException, IOException {
        String stored = preferences.getString(userId, null);
        if (stored == null) return null;
        byte[] bytes = Base64.decode(stored, Base64.NO_WRAP);
        GCMParameterSpec nonce = new GCMParameterSpec(128, bytes, 0, NONCE_BYTES);
        Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
        cipher.init(Cipher.DECRYPT_MODE, key(), nonce);
        cipher.updateAAD(userId.getBytes(StandardCharsets.UTF_8));
        return new String(cipher.doFinal(bytes, NONCE_BYTES, bytes.length - NONCE_BYTES), StandardCharsets.UTF_8);
    }

    @Override
    public void store(String token, String userId) throws GeneralSecurityException, IOException {
        Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
        // The Keystore chooses the nonce.
        cipher.init(Cipher.ENCRYPT_MODE, key());
        cipher.updateAAD(userId.getBytes(StandardCharsets.UTF_8));
        byte[] sealed = cipher.doFinal(token.getBytes(StandardCharsets.UTF_8));
        byte[] nonce = cipher.getIV();
        if (nonce.length != NONCE_BYTES) throw new GeneralSecurityException("a nonce has " + nonce.length + " bytes");
        byte[] bytes = new byte[NONCE_BYTES + sealed.length];
        System.arraycopy(nonce, 0, bytes, 0, NONCE_BYTES);
        System.arraycopy(sealed, 0, bytes, NONCE_BYTES, sealed.length);
        write(preferences.edit().putString(userId, Base64.encodeToString(bytes, Base64.NO_WRAP)));
    }

    @Override
    public void remove(String userId) throws IOException {
        write(preferences.edit().remove(userId));
    }

    @Override
    public void removeAll() throws IOException {
        write(preferences.edit().clear());
    }

    private static void write(SharedPreferences.Editor change) throws IOException {
        if (!change.commit()) throw new IOException("the preferences were not written");
    }

    private static Key key() throws GeneralSecurityException, IOException {
        KeyStore keys = KeyStore.getInstance(PROVIDER);
        keys.load(null);
        Key key = keys.getKey(NAME, null);
        if (key != null) return key;
        KeyGenerator generator = KeyGenerator.getInstance(KeyProperties.KEY_ALGORITHM_AES, PROVIDER);
        int purposes = KeyProperties.PURPOSE_ENCRYPT | KeyProperties.PURPOSE_DECRYPT;
        generator.init(new KeyGenParameterSpec.Builder(NAME, purposes)
            .setBlockModes(KeyProperties.BLOCK_MODE_GCM)
            .setEncryptionPaddings(KeyProperties.ENCRYPTION_PADDING_NONE).build());
        return generator.generateKey();
    }
}
