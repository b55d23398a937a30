package android.content;

/** Like all classes in this folder: a declaration for compiling samples without Android's SDK. */
public abstract class Context {
    public static final int MODE_PRIVATE = 0;

    public abstract SharedPreferences getSharedPreferences(String name, int mode);
}
