// A call that does nothing on the CPU. Aims at: what the call and the timer themselves cost.
#include "op.h"

SGEMV_FLOOR(empty_cpu, K_ANY, 1, PACKED, 4, "a call that does nothing") { (void)args; }
