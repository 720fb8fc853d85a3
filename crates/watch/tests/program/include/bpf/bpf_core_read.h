#include "bpf_helpers.h"
#define BPF_CORE_READ(group, cgroup, kn, id) ((group)->cgroup->kn->id)
