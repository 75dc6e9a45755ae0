/* Stub of NVIDIA's driver with STUB_GPUS GPUs. A kernel is a wait. When a GPU is released, a line is appended to STUB_LOG. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
    int number;
    unsigned long copies, copied_bytes, kernels;
    pthread_mutex_t lock;
} gpu;

typedef struct {
    gpu *device;
    uint64_t kernel_ns;
    int pending;
    pthread_mutex_t lock;
    pthread_cond_t idle;
} stream;

typedef struct {
    stream *queue;
    uint64_t wait_ns;
    void (*call)(void *);
    void *data;
} callback;

static gpu gpus[8];
static __thread gpu *current;

static int setting(const char *name) {
    const char *value = getenv(name);
    return value ? atoi(value) : 0;
}

int cuInit(unsigned flags) { return setting("STUB_INIT"); }
int cuGetErrorString(int code, const char **text) { *text = "no CUDA-capable device is detected"; return 0; }
int cuDeviceGetCount(int *count) { *count = setting("STUB_GPUS"); return 0; }
int cuDeviceGet(int *device, int number) { *device = number; return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) { *value = 4; return attribute == 16 ? 0 : 1; }
int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags) { return flags == 4 ? 0 : 1; }
int cuDevicePrimaryCtxRetain(void **context, int device) {
    gpus[device].number = device;
    *context = &gpus[device];
    return 0;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
    gpu *own = &gpus[device];
    FILE *log = fopen(getenv("STUB_LOG"), "a");
    fprintf(log, "%d %lu %lu %lu\n", device, own->copies, own->copied_bytes, own->kernels);
    fclose(log);
    return 0;
}
int cuCtxSetCurrent(void *context) { current = context; return 0; }
int cuModuleLoadData(void **module, const void *text) { *module = gpus; return strstr(text, ".entry spin(") ? 0 : 218; }
int cuModuleUnload(void *module) { return 0; }
int cuModuleGetFunction(void **function, void *module, const char *name) { *function = gpus; return strcmp(name, "spin") ? 500 : 0; }
int cuMemAlloc_v2(uint64_t *memory, size_t bytes) { *memory = 1; return 0; }
int cuMemFree_v2(uint64_t memory) { return 0; }
int cuMemAllocHost_v2(void **memory, size_t bytes) { *memory = malloc(bytes); return *memory ? 0 : 2; }
int cuMemFreeHost(void *memory) { free(memory); return 0; }
int cuStreamCreate(void **made, unsigned flags) {
    stream *own = calloc(1, sizeof *own);
    own->device = current;
    *made = own;
    return 0;
}
int cuStreamDestroy_v2(void *own) { return 0; }
int cuStreamQuery(void *own) {
    if (setting("STUB_FAILS")) return 700;
    return ((stream *)own)->pending ? 600 : 0;
}
int cuStreamSynchronize(void *given) {
    stream *own = given;
    pthread_mutex_lock(&own->lock);
    while (own->pending) pthread_cond_wait(&own->idle, &own->lock);
    pthread_mutex_unlock(&own->lock);
    return 0;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *on) {
    gpu *own = ((stream *)on)->device;
    if (own != current) return 201;
    own->copies++;
    own->copied_bytes += bytes;
    return 0;
}
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *on, void **parameters, void **extra) {
    if (gx != 4 || ((stream *)on)->device != current) return 1;
    current->kernels++;
    ((stream *)on)->kernel_ns = *(uint64_t *)parameters[0];
    return 0;
}
static void *run_callback(void *argument) {
    callback *own = argument;
    struct timespec wait = {own->wait_ns / 1000000000, own->wait_ns % 1000000000};
    nanosleep(&wait, NULL);
    own->call(own->data);
    pthread_mutex_lock(&own->queue->lock);
    own->queue->pending--;
    pthread_cond_broadcast(&own->queue->idle);
    pthread_mutex_unlock(&own->queue->lock);
    free(own);
    return NULL;
}
/* With STUB_FAILS the GPU fails, and the callback is never called. */
int cuLaunchHostFunc(void *on, void (*call)(void *), void *data) {
    if (setting("STUB_FAILS")) return 0;
    callback *own = malloc(sizeof *own);
    *own = (callback){on, ((stream *)on)->kernel_ns, call, data};
    pthread_mutex_lock(&own->queue->lock);
    own->queue->pending++;
    pthread_mutex_unlock(&own->queue->lock);
    pthread_t thread;
    if (pthread_create(&thread, NULL, run_callback, own)) return 2;
    pthread_detach(thread);
    return 0;
}
