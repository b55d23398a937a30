package braze;

/** Braze's samples as methods. */
public interface BrazeSamples {
    void configure();
    void changeUser();
    void setSignature();
    void subscribe();
}
