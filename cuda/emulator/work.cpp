#include "emulator.h"

namespace emulator
{

emulator_work work;

} // namespace emulator

extern "C" __attribute__((visibility("default"))) emulator_work softback_emulator_work()
{
    return emulator::work;
}
