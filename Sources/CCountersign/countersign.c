#include "countersign.h"
