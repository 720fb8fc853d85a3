#include "bpf_helpers.h"
