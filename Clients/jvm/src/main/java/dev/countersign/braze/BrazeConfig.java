package dev.countersign.braze;

import java.io.InputStream;
import java.util.HashMap;
import java.util.Map;
import javax.xml.parsers.DocumentBuilderFactory;
import org.w3c.dom.Element;
import org.w3c.dom.NodeList;

/** Replaces com.braze.configuration.BrazeConfig. Missing values are read from {@code braze.xml} on the class path. */
public final class BrazeConfig {
    final String apiKey;
    final String endpoint;
    final boolean isSdkAuthenticationEnabled;
    final String dataDirectory;

    private BrazeConfig(Builder builder) {
        Map<String, String> file = file();
        apiKey = builder.apiKey != null ? builder.apiKey : file.get("com_braze_api_key");
        endpoint = builder.endpoint != null ? builder.endpoint : file.get("com_braze_custom_endpoint");
        isSdkAuthenticationEnabled = builder.isSdkAuthenticationEnabled != null
            ? builder.isSdkAuthenticationEnabled : "true".equals(file.get("com_braze_sdk_authentication_enabled"));
        dataDirectory = builder.dataDirectory;
    }

    private static Map<String, String> file() {
        Map<String, String> values = new HashMap<>();
        try (InputStream stream = BrazeConfig.class.getResourceAsStream("/braze.xml")) {
            if (stream == null) return values;
            NodeList nodes = DocumentBuilderFactory.newInstance().newDocumentBuilder().parse(stream).getDocumentElement().getChildNodes();
            for (int index = 0; index < nodes.getLength(); index++) {
                if (!(nodes.item(index) instanceof Element)) continue;
                Element element = (Element) nodes.item(index);
                values.put(element.getAttribute("name"), element.getTextContent().trim());
            }
        } catch (Exception failure) {
            throw new IllegalArgumentException("braze.xml cannot be read", failure);
        }
        return values;
    }

    /** Builds the configuration for {@link Braze#configure}. */
    public static final class Builder {
        private String apiKey;
        private String endpoint;
        private Boolean isSdkAuthenticationEnabled;
        private String dataDirectory;

        /** The app's write key. */
        public Builder setApiKey(String apiKey) {
            this.apiKey = apiKey;
            return this;
        }

        /** The gateway's URL. */
        public Builder setCustomEndpoint(String endpoint) {
            this.endpoint = endpoint;
            return this;
        }

        /** Whether tokens are sent. */
        public Builder setIsSdkAuthenticationEnabled(boolean isEnabled) {
            isSdkAuthenticationEnabled = isEnabled;
            return this;
        }

        /** The folder of the queue. Braze's SDK gets it from the context instead. */
        public Builder setDataDirectory(String path) {
            dataDirectory = path;
            return this;
        }

        /** Throws {@link IllegalArgumentException} if {@code braze.xml} cannot be read. */
        public BrazeConfig build() {
            return new BrazeConfig(this);
        }
    }
}
