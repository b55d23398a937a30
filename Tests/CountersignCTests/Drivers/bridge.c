/* JNI over countersign.h, as a plugin for Android would have it. */
#include <jni.h>

#include "countersign.h"

static JavaVM *machine;
static jclass driver;

static JNIEnv *environment(void) {
    JNIEnv *env;
    (*machine)->AttachCurrentThreadAsDaemon(machine, (void **)&env, NULL);
    return env;
}

jint JNI_OnLoad(JavaVM *vm, void *reserved) {
    machine = vm;
    JNIEnv *env = environment();
    driver = (*env)->NewGlobalRef(env, (*env)->FindClass(env, "Driver"));
    return JNI_VERSION_1_8;
}

static void ask(void *context, uint64_t number) {
    JNIEnv *env = environment();
    jmethodID method = (*env)->GetStaticMethodID(env, driver, "ask", "(J)V");
    (*env)->CallStaticVoidMethod(env, driver, method, (jlong)number);
}

static void complete(void *context, const char *json) {
    JNIEnv *env = environment();
    jobject future = context;
    jclass type = (*env)->GetObjectClass(env, future);
    jmethodID method = (*env)->GetMethodID(env, type, "complete", "(Ljava/lang/Object;)Z");
    (*env)->CallBooleanMethod(env, future, method, (*env)->NewStringUTF(env, json));
    (*env)->DeleteGlobalRef(env, future);
}

JNIEXPORT jlong JNICALL Java_Driver_open(JNIEnv *env, jclass type, jstring configuration) {
    const char *text = (*env)->GetStringUTFChars(env, configuration, NULL);
    countersign_client *client = countersign_open(text, ask, NULL, NULL, NULL);
    (*env)->ReleaseStringUTFChars(env, configuration, text);
    return (jlong)(intptr_t)client;
}

JNIEXPORT void JNICALL Java_Driver_answer(JNIEnv *env, jclass type, jlong client, jlong number, jstring token) {
    const char *text = token ? (*env)->GetStringUTFChars(env, token, NULL) : NULL;
    countersign_answer((countersign_client *)(intptr_t)client, (uint64_t)number, text);
    if (token) (*env)->ReleaseStringUTFChars(env, token, text);
}

JNIEXPORT void JNICALL Java_Driver_call(
    JNIEnv *env, jclass type, jlong client, jstring method, jstring arguments, jobject result) {
    const char *name = (*env)->GetStringUTFChars(env, method, NULL);
    const char *text = arguments ? (*env)->GetStringUTFChars(env, arguments, NULL) : NULL;
    countersign_call(
        (countersign_client *)(intptr_t)client, name, text, complete, (*env)->NewGlobalRef(env, result));
    (*env)->ReleaseStringUTFChars(env, method, name);
    if (arguments) (*env)->ReleaseStringUTFChars(env, arguments, text);
}

JNIEXPORT void JNICALL Java_Driver_close(JNIEnv *env, jclass type, jlong client, jobject result) {
    countersign_close((countersign_client *)(intptr_t)client, complete, (*env)->NewGlobalRef(env, result));
}
