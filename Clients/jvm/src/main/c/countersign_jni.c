/* Native methods of dev.countersign.Native. Except for the version, texts are byte arrays: JNI's strings are modified UTF-8. */
#include <countersign.h>
#include <jni.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static JavaVM *machine;
static jclass native;
static jmethodID on_result, on_event, on_ask;
static pthread_key_t attached;

static void detach(void *unused) {
    (void)unused;
    (*machine)->DetachCurrentThread(machine);
}

/* Attaches a thread of the library to the JVM at its first callback. The thread is detached when it ends. */
static JNIEnv *environment(void) {
    JNIEnv *env = NULL;
    if ((*machine)->GetEnv(machine, (void **)&env, JNI_VERSION_1_8) == JNI_OK) return env;
    JavaVMAttachArgs arguments = {JNI_VERSION_1_8, (char *)"countersign", NULL};
    if ((*machine)->AttachCurrentThreadAsDaemon(machine, (void *)&env, &arguments) != JNI_OK) return NULL;
    pthread_setspecific(attached, machine);
    return env;
}

jint JNI_OnLoad(JavaVM *vm, void *reserved) {
    (void)reserved;
    machine = vm;
    JNIEnv *env = NULL;
    if ((*vm)->GetEnv(vm, (void **)&env, JNI_VERSION_1_8) != JNI_OK) return JNI_ERR;
    jclass found = (*env)->FindClass(env, "dev/countersign/Native");
    if (!found || pthread_key_create(&attached, detach) != 0) return JNI_ERR;
    native = (*env)->NewGlobalRef(env, found);
    on_result = (*env)->GetStaticMethodID(env, native, "result", "(J[B)V");
    on_event = (*env)->GetStaticMethodID(env, native, "event", "(J[B)V");
    on_ask = (*env)->GetStaticMethodID(env, native, "ask", "(JJ[B)V");
    return on_result && on_event && on_ask ? JNI_VERSION_1_8 : JNI_ERR;
}

static jbyteArray bytes(JNIEnv *env, const char *text, size_t length) {
    jbyteArray array = (*env)->NewByteArray(env, (jsize)length);
    if (array) (*env)->SetByteArrayRegion(env, array, 0, (jsize)length, (const jbyte *)text);
    return array;
}

/* Calls a static method of Native. `context` is a number that Native looks up, not a pointer. */
static void tell(jmethodID method, void *context, const char *text, size_t length) {
    JNIEnv *env = environment();
    if (!env) return;
    jbyteArray array = bytes(env, text, length);
    if (array) (*env)->CallStaticVoidMethod(env, native, method, (jlong)(intptr_t)context, array);
    (*env)->ExceptionClear(env);
    (*env)->DeleteLocalRef(env, array);
}

static void result(void *context, const char *json, size_t length) { tell(on_result, context, json, length); }

static void event(void *context, const char *json, size_t length) { tell(on_event, context, json, length); }

/* If memory is short, the token request is dropped and times out in the library. */
static void ask(void *context, uint64_t number, const char *json, size_t length) {
    JNIEnv *env = environment();
    if (!env) return;
    jbyteArray array = bytes(env, json, length);
    if (array) (*env)->CallStaticVoidMethod(env, native, on_ask, (jlong)(intptr_t)context, (jlong)number, array);
    (*env)->ExceptionClear(env);
    (*env)->DeleteLocalRef(env, array);
}

struct text {
    jbyte *bytes;
    size_t length;
};

static struct text take(JNIEnv *env, jbyteArray array) {
    struct text text = {NULL, 0};
    if (array) {
        text.bytes = (*env)->GetByteArrayElements(env, array, NULL);
        text.length = (size_t)(*env)->GetArrayLength(env, array);
    }
    return text;
}

static void release(JNIEnv *env, jbyteArray array, struct text text) {
    if (text.bytes) (*env)->ReleaseByteArrayElements(env, array, text.bytes, JNI_ABORT);
}

/* Returns the handle. On failure returns 0 and puts the error into error[0], as JSON. */
JNIEXPORT jlong JNICALL Java_dev_countersign_Native_open(
    JNIEnv *env, jclass type, jint mode, jlong context, jbyteArray configuration, jboolean asks, jobjectArray error) {
    (void)type;
    struct text text = take(env, configuration);
    char *failure = NULL;
    size_t length = 0;
    countersign_client *client = NULL;
    countersign_provider provider = asks ? ask : NULL;
    void *number = (void *)(intptr_t)context;
    const char *given = (const char *)text.bytes;
    if (mode == 0) client = countersign_open_signed_user(given, text.length, provider, event, number, &failure, &length);
    if (mode == 1) client = countersign_open_access_token(given, text.length, event, number, &failure, &length);
    if (mode == 2) client = countersign_open_bloomreach(given, text.length, provider, event, number, &failure, &length);
    release(env, configuration, text);
    if (failure) (*env)->SetObjectArrayElement(env, error, 0, bytes(env, failure, length));
    countersign_free(failure);
    return (jlong)(intptr_t)client;
}

JNIEXPORT jint JNICALL Java_dev_countersign_Native_call(
    JNIEnv *env, jclass type, jlong client, jbyteArray method, jbyteArray arguments, jlong context) {
    (void)type;
    struct text name = take(env, method), text = take(env, arguments);
    countersign_status status = countersign_call(
        (countersign_client *)(intptr_t)client, (const char *)name.bytes, name.length, (const char *)text.bytes, text.length,
        result, (void *)(intptr_t)context);
    release(env, method, name);
    release(env, arguments, text);
    return status;
}

JNIEXPORT jint JNICALL Java_dev_countersign_Native_answer(
    JNIEnv *env, jclass type, jlong client, jlong number, jbyteArray token) {
    (void)type;
    struct text text = take(env, token);
    countersign_status status = countersign_answer(
        (countersign_client *)(intptr_t)client, (uint64_t)number, (const char *)text.bytes, text.length);
    release(env, token, text);
    return status;
}

JNIEXPORT jint JNICALL Java_dev_countersign_Native_close(JNIEnv *env, jclass type, jlong client, jlong context) {
    (void)env;
    (void)type;
    return countersign_close((countersign_client *)(intptr_t)client, result, (void *)(intptr_t)context);
}

JNIEXPORT jstring JNICALL Java_dev_countersign_Native_version(JNIEnv *env, jclass type) {
    (void)type;
    return (*env)->NewStringUTF(env, countersign_version());
}
