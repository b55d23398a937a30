typedef struct z_stream_s {
    unsigned char *next_in; unsigned int avail_in; unsigned long total_in;
    unsigned char *next_out; unsigned int avail_out; unsigned long total_out;
    const char *msg; void *state; void *zalloc; void *zfree; void *opaque; int data_type; unsigned long adler, reserved;
} z_stream;
#define Z_OK 0
#define Z_STREAM_END 1
#define Z_FINISH 4
#define Z_DEFLATED 8
#define Z_DEFAULT_STRATEGY 0
#define MAX_WBITS 15
#define ZLIB_VERSION "1.2.12"
int deflateInit2_(z_stream *, int, int, int, int, int, const char *, int);
unsigned long deflateBound(z_stream *, unsigned long);
int deflate(z_stream *, int);
int deflateEnd(z_stream *);
