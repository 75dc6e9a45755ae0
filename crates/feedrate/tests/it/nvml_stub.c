/* Stub of NVIDIA's management library with two GPUs. The second GPU reports only its name. */
#include <stdint.h>
#include <string.h>

typedef struct { unsigned gpu, memory; } utilization;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory_v2;

static int first, second;

int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **device) { *device = i == 0 ? &first : &second; return 0; }
int nvmlDeviceGetName(void *device, char *name, unsigned length) {
    strncpy(name, device == &first ? "Stub 100" : "Stub 1", length);
    return 0;
}
int nvmlDeviceGetUtilizationRates(void *device, utilization *rates) {
    rates->gpu = 42;
    rates->memory = 7;
    return device == &first ? 0 : 3;
}
int nvmlDeviceGetMemoryInfo_v2(void *device, memory_v2 *memory) {
    memory->used = 1ULL << 33;
    memory->total = 120000000000ULL;
    return device == &first ? 0 : 3;
}
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) {
    *milliwatts = 350500;
    return device == &first ? 0 : 3;
}
