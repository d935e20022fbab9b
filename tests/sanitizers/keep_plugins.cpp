// Linked to what sanitizers watch (make SAN=...): plugins of Open MPI stay where they are, so that
// what they leaked can be laid at their door.
extern "C" __attribute__((visibility("default"))) int dlclose(void*) noexcept {
  return 0;
}
