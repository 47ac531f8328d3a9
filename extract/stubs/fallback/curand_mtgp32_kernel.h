// clang's own CUDA wrapper includes this header unconditionally; without it every parse ends there.
#pragma once
