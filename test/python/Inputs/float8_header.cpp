// The conversions of NVIDIA's header cuda_fp8.h on the host, for test/python/float8.py.
#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#define MAKE(NAME, T, KIND) \
  extern "C" void make_##NAME##_##KIND(const T *x, uint8_t *r, long n) \
  { \
    for (long i = 0; i < n; i++) r[i] = __nv_fp8_##KIND(x[i]).__x; \
  }
#define BACK(NAME, T, KIND) \
  extern "C" void back_##NAME##_##KIND(const uint8_t *x, T *r, long n) \
  { \
    for (long i = 0; i < n; i++) { \
      __nv_fp8_##KIND value; \
      value.__x = x[i]; \
      r[i] = (T)value; \
    } \
  }
#define CONVERT(NAME, FUNCTION, T, MODE) \
  extern "C" void NAME(const T *x, uint8_t *r, long n, int saturation, int mode) \
  { \
    const __nv_saturation_t saturates = saturation ? __NV_SATFINITE : __NV_NOSAT; \
    for (long i = 0; i < n; i++) r[i] = FUNCTION(x[i], saturates, MODE); \
  }
#define MAKE_ALL(NAME, T) MAKE(NAME, T, e5m2) MAKE(NAME, T, e4m3) MAKE(NAME, T, e8m0)
#define ALL(NAME, T) MAKE_ALL(NAME, T) BACK(NAME, T, e5m2) BACK(NAME, T, e4m3) BACK(NAME, T, e8m0)

ALL(float16, __half)
ALL(float32, float)
ALL(float64, double)
ALL(int16, int16_t)
ALL(int32, int32_t)
ALL(int64, int64_t)
ALL(uint16, uint16_t)
ALL(uint32, uint32_t)
ALL(uint64, uint64_t)
BACK(int8, int8_t, e5m2)
BACK(int8, int8_t, e4m3)
BACK(int8, int8_t, e8m0)
BACK(uint8, uint8_t, e5m2)
BACK(uint8, uint8_t, e4m3)
BACK(uint8, uint8_t, e8m0)
MAKE_ALL(bfloat16, __nv_bfloat16)
#define FORMAT (mode ? __NV_E5M2 : __NV_E4M3)
CONVERT(float32_to_fp8, __nv_cvt_float_to_fp8, float, FORMAT)
CONVERT(float64_to_fp8, __nv_cvt_double_to_fp8, double, FORMAT)
CONVERT(float32_to_e8m0, __nv_cvt_float_to_e8m0, float, (cudaRoundMode)mode)
CONVERT(float64_to_e8m0, __nv_cvt_double_to_e8m0, double, (cudaRoundMode)mode)
