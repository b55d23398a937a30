package android.content;

/** Declarations of Android's classes, for compiling samples without Android's SDK. */
public abstract class Context {
    public static final int MODE_PRIVATE = 0;

    public abstract SharedPreferences getSharedPreferences(String name, int mode);
}
