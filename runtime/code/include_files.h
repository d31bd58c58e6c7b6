/* Computes a digest of the files that CUDA C includes, for keys of the disk cache. */
#ifndef KJ_INCLUDE_FILES_H
#define KJ_INCLUDE_FILES_H

#include "base/device.h"
#include "code/disk.h"

/* Computes a digest of NVRTC and of the files that an input in CUDA C includes. Returns false if
 * the text does not determine the files, if a file cannot be read, or if NVRTC is missing.
 * driver_version selects the version of NVRTC, as in kj_link_target. */
bool kj_digest_includes(const kj_link_input *input, int driver_version, kj_digest *digest);

#endif
