"""From framework source to kernels, launches, bindings and slices, by the compiler's own syntax tree."""
