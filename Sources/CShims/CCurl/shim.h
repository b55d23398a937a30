#ifndef COUNTERSIGN_CCURL_SHIM_H
#define COUNTERSIGN_CCURL_SHIM_H

#include <curl/curl.h>

// `curl_easy_setopt` and `curl_easy_getinfo` are variadic, which Swift cannot call.

static inline CURLcode countersign_curl_set_long(CURL *handle, CURLoption option, long value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode countersign_curl_set_offset(CURL *handle, CURLoption option, curl_off_t value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode countersign_curl_set_string(CURL *handle, CURLoption option, const char *value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode countersign_curl_set_pointer(CURL *handle, CURLoption option, const void *value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode countersign_curl_set_list(CURL *handle, CURLoption option, struct curl_slist *value) {
    return curl_easy_setopt(handle, option, value);
}

typedef size_t (*countersign_curl_data_callback)(char *bytes, size_t size, size_t count, void *context);

static inline CURLcode countersign_curl_set_data_callback(
    CURL *handle, CURLoption option, countersign_curl_data_callback callback) {
    return curl_easy_setopt(handle, option, callback);
}

typedef int (*countersign_curl_progress_callback)(
    void *context, curl_off_t downloadTotal, curl_off_t downloaded, curl_off_t uploadTotal, curl_off_t uploaded);

static inline CURLcode countersign_curl_set_progress_callback(
    CURL *handle, countersign_curl_progress_callback callback) {
    return curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, callback);
}

typedef curl_socket_t (*countersign_curl_socket_callback)(
    void *context, curlsocktype purpose, struct curl_sockaddr *address);

static inline CURLcode countersign_curl_set_socket_callback(
    CURL *handle, countersign_curl_socket_callback callback) {
    return curl_easy_setopt(handle, CURLOPT_OPENSOCKETFUNCTION, callback);
}

static inline curl_socket_t countersign_curl_open_socket(const struct curl_sockaddr *address) {
#ifdef SOCK_CLOEXEC
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
#else
    return socket(address->family, address->socktype, address->protocol);
#endif
}

// An IPv6 address is longer than the type of `addr`, so Swift must not copy it.
static inline const struct sockaddr *countersign_curl_address(const struct curl_sockaddr *address) {
    return &address->addr;
}

static inline CURLcode countersign_curl_get_long(CURL *handle, CURLINFO info, long *value) {
    return curl_easy_getinfo(handle, info, value);
}

static inline CURLcode countersign_curl_get_offset(CURL *handle, CURLINFO info, curl_off_t *value) {
    return curl_easy_getinfo(handle, info, value);
}

// Does nothing before libcurl 7.87, which introduced the option.
static inline void countersign_curl_quick_exit(CURL *handle) {
#if LIBCURL_VERSION_NUM >= 0x075700
    curl_easy_setopt(handle, CURLOPT_QUICK_EXIT, 1L);
#endif
}

#endif
