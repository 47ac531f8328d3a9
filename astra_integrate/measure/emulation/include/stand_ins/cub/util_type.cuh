// Stand-in: the emulation's prelude declares what kernels take from this header.
#pragma once
