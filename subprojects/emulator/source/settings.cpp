#include "emulator.h"
#include "sanitizers.h"

namespace emulator
{

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value ? value : "";
}

static Settings read_settings()
{
    Settings read = {
        1, Order::random, static_cast<size_t>(under_tsan() ? 4 : 64) << 30, 1, true, false, false};
    if (const char *seed = variable("SOFTBACK_EMULATOR_SEED"); *seed)
        read.seed = strtoull(seed, nullptr, 10);
    if (const char *memory = variable("SOFTBACK_EMULATOR_MEMORY"); *memory)
        read.memory = strtoull(memory, nullptr, 10);
    std::string order = variable("SOFTBACK_EMULATOR_ORDER");
    if (order == "forward")
        read.order = Order::forward;
    else if (order == "reverse")
        read.order = Order::reverse;
    else if (order != "" && order != "random")
        complain("SOFTBACK_EMULATOR_ORDER=%s: not random, forward or reverse", order.c_str());
    if (const char *devices = variable("SOFTBACK_EMULATOR_DEVICES"); *devices)
        read.devices = atoi(devices);
    read.lazy = *variable("SOFTBACK_EMULATOR_LAZY") != '0';
    read.guard = strtoull(variable("SOFTBACK_EMULATOR_GUARD"), nullptr, 10);
    read.rounding = *variable("SOFTBACK_EMULATOR_ROUNDING") == '1';
    return read;
}

const Settings &settings()
{
    static const Settings once = read_settings();
    return once;
}

unsigned random_bits()
{
    /* Multiplication gives seeds 1, 2, 3 different beginnings; the state must not be 0. */
    static uint64_t state = (settings().seed + 1) * 0x9E3779B97F4A7C15 | 1;
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return static_cast<unsigned>(state * 0x2545F4914F6CDD1D >> 32);
}

} // namespace emulator
