/* Stands in for libnvidia-ml.so.1. What it says is read from the file NVML_SCRIPT at each call:
 * lines of "<function> <device> <code> <number> <number>"; a function not in it is fine and says 0. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { unsigned long long total, free, used; } memory_t;
typedef struct { unsigned gpu, memory; } utilization_t;

static int say(const char *function, long device, unsigned long long *first,
               unsigned long long *second) {
    char name[64];
    long of;
    int code = 0, found = 0;
    FILE *script = fopen(getenv("NVML_SCRIPT"), "r");
    if (!script) return 9; /* NVML_ERROR_DRIVER_NOT_LOADED */
    *first = *second = 0;
    while (!found && fscanf(script, "%63s %ld %d %llu %llu", name, &of, &code, first, second) == 5)
        found = of == device && !strcmp(name, function);
    fclose(script);
    if (!found) *first = *second = 0;
    return found ? code : 0;
}

#define DEVICE(handle) ((long)(handle) - 1)
#define SINGLE(function)                                            \
    int function(void *handle, unsigned *value) {                   \
        unsigned long long first, second;                           \
        int code = say(#function, DEVICE(handle), &first, &second); \
        *value = (unsigned)first;                                   \
        return code;                                                \
    }
#define OF_A_KIND(function)                                         \
    int function(void *handle, unsigned kind, unsigned *value) {    \
        unsigned long long first, second;                           \
        int code = say(#function, DEVICE(handle), &first, &second); \
        *value = (unsigned)first + kind;                            \
        return code;                                                \
    }

SINGLE(nvmlDeviceGetPowerUsage)
SINGLE(nvmlDeviceGetEnforcedPowerLimit)
OF_A_KIND(nvmlDeviceGetClockInfo)
OF_A_KIND(nvmlDeviceGetTemperature)
OF_A_KIND(nvmlDeviceGetPcieThroughput)

int nvmlInitWithFlags(unsigned flags) {
    unsigned long long first, second;
    (void)flags;
    return say("nvmlInitWithFlags", 0, &first, &second);
}

int nvmlDeviceGetCount_v2(unsigned *count) {
    unsigned long long first, second;
    int code = say("nvmlDeviceGetCount_v2", 0, &first, &second);
    *count = (unsigned)first;
    return code;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
    unsigned long long first, second;
    *handle = (void *)(long)(index + 1);
    return say("nvmlDeviceGetHandleByIndex_v2", index, &first, &second);
}

int nvmlDeviceGetName(void *handle, char *name, unsigned length) {
    snprintf(name, length, "Stub %ld", DEVICE(handle));
    return 0;
}

int nvmlDeviceGetUtilizationRates(void *handle, utilization_t *rates) {
    unsigned long long gpu, memory;
    int code = say("nvmlDeviceGetUtilizationRates", DEVICE(handle), &gpu, &memory);
    rates->gpu = (unsigned)gpu;
    rates->memory = (unsigned)memory;
    return code;
}

int nvmlDeviceGetMemoryInfo(void *handle, memory_t *memory) {
    unsigned long long used, total;
    int code = say("nvmlDeviceGetMemoryInfo", DEVICE(handle), &used, &total);
    memory->used = used;
    memory->total = total;
    memory->free = total - used;
    return code;
}
