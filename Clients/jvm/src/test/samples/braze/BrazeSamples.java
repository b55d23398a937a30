package braze;

/** Braze's samples, which JavaSamples and KotlinSamples implement. */
public interface BrazeSamples {
    void configure();
    void changeUser();
    void setSignature();
    void subscribe();
}
