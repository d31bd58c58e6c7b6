/* The files that CUDA C includes. */
#ifndef KJ_INCLUDE_FILES_H
#define KJ_INCLUDE_FILES_H

#include "base/device.h"
#include "code/disk.h"

/* Computes a digest of the files that the CUDA C of an input includes, and of NVRTC. Returns false
 * if the files cannot be told from the text, if one of them cannot be read, or if there is no
 * NVRTC. driver_version selects the version of NVRTC, as in kj_link_target. */
bool kj_digest_includes(const kj_link_input *input, int driver_version, kj_digest *digest);

#endif
