/* Elements of every hvrun_type as numbers, and the outcome that an allreduce of them must have.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <hvrun/hvrun.h>

/* How far from the exact value a result may be, relatively; 0 for integers. */
typedef struct {
  hvrun_type type;
  const char* name;
  size_t bytes;
  double tolerance;
} element;

static const element kElements[] = {
    {HVRUN_UINT8, "uint8", 1, 0},
    {HVRUN_INT8, "int8", 1, 0},
    {HVRUN_INT16, "int16", 2, 0},
    {HVRUN_INT32, "int32", 4, 0},
    {HVRUN_INT64, "int64", 8, 0},
    {HVRUN_FLOAT16, "float16", 2, 1e-3},
    {HVRUN_BFLOAT16, "bfloat16", 2, 8e-3},
    {HVRUN_FLOAT32, "float32", 4, 3e-7},
    {HVRUN_FLOAT64, "float64", 8, 5e-16},
    {HVRUN_BOOL, "bool", 1, 0},
    {HVRUN_FLOAT8_E4M3, "float8_e4m3", 1, 0.07},
    {HVRUN_FLOAT8_E5M2, "float8_e5m2", 1, 0.13},
};
enum { kElementTypes = sizeof kElements / sizeof *kElements };

static inline int is_integer(hvrun_type type) { return type <= HVRUN_INT64; }
static inline int is_signed(hvrun_type type) { return type != HVRUN_UINT8 && type != HVRUN_BOOL; }

/* The upper half of a float is a bfloat16. Exact for numbers of at most eight bits. */
static inline uint16_t bfloat_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return (uint16_t)(bits >> 16);
}

static inline double bfloat_value(uint16_t bfloat) {
  const uint32_t bits = (uint32_t)bfloat << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* IEEE 754 binary16. Exact for numbers of at most eleven bits that are not tiny. */
static inline uint16_t half_of(double value) {
  int exponent = 0;
  if (value == 0) return 0;
  const int fraction = (int)ldexp(frexp(fabs(value), &exponent), 11) - 1024;
  return (uint16_t)((value < 0 ? 0x8000 : 0) | (exponent + 14) << 10 | fraction);
}

static inline double half_value(uint16_t half) {
  const int exponent = half >> 10 & 31, fraction = half & 1023;
  const double value = exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25);
  return half & 0x8000 ? -value : value;
}

/* Exact for numbers of at most four bits, of 2^-6 to 448. An e5m2 is the upper half of a half. */
static inline uint8_t e4m3_of(double value) {
  int exponent = 0;
  if (value == 0) return 0;
  const int fraction = (int)ldexp(frexp(fabs(value), &exponent), 4) - 8;
  return (uint8_t)((value < 0 ? 0x80 : 0) | (exponent + 6) << 3 | fraction);
}

static inline double e4m3_value(uint8_t e4m3) {
  const int exponent = e4m3 >> 3 & 15, fraction = e4m3 & 7;
  const double value = exponent == 0 ? ldexp(fraction, -9) : ldexp(8 + fraction, exponent - 10);
  return e4m3 & 0x80 ? -value : value;
}

#define STORE(c_type, value)               \
  do {                                     \
    const c_type stored = (c_type)(value); \
    memcpy(to, &stored, sizeof stored);    \
  } while (0)

/* Integers wrap; in a bool everything but 0 is 1. */
static inline void store_element(hvrun_type type, void* data, size_t index, double value) {
  char* to = (char*)data + index * hvrun_type_size(type);
  const int64_t whole = is_integer(type) ? (int64_t)value : 0;
  if (type == HVRUN_UINT8 || type == HVRUN_INT8) STORE(uint8_t, whole);
  if (type == HVRUN_INT16) STORE(uint16_t, whole);
  if (type == HVRUN_INT32) STORE(uint32_t, whole);
  if (type == HVRUN_INT64) STORE(int64_t, whole);
  if (type == HVRUN_FLOAT16) STORE(uint16_t, half_of(value));
  if (type == HVRUN_BFLOAT16) STORE(uint16_t, bfloat_of((float)value));
  if (type == HVRUN_FLOAT32) STORE(float, value);
  if (type == HVRUN_FLOAT64) STORE(double, value);
  if (type == HVRUN_FLOAT8_E4M3) STORE(uint8_t, e4m3_of(value));
  if (type == HVRUN_FLOAT8_E5M2) STORE(uint8_t, half_of(value) >> 8);
  if (type == HVRUN_BOOL) STORE(uint8_t, value != 0);
}

#define LOADED(c_type, expression) \
  do {                             \
    c_type it;                     \
    memcpy(&it, from, sizeof it);  \
    return (double)(expression);   \
  } while (0)

static inline double load_element(hvrun_type type, const void* data, size_t index) {
  const char* from = (const char*)data + index * hvrun_type_size(type);
  if (type == HVRUN_INT8) LOADED(int8_t, it);
  if (type == HVRUN_INT16) LOADED(int16_t, it);
  if (type == HVRUN_INT32) LOADED(int32_t, it);
  if (type == HVRUN_INT64) LOADED(int64_t, it);
  if (type == HVRUN_FLOAT16) LOADED(uint16_t, half_value(it));
  if (type == HVRUN_BFLOAT16) LOADED(uint16_t, bfloat_value(it));
  if (type == HVRUN_FLOAT32) LOADED(float, it);
  if (type == HVRUN_FLOAT64) LOADED(double, it);
  if (type == HVRUN_FLOAT8_E4M3) LOADED(uint8_t, e4m3_value(it));
  if (type == HVRUN_FLOAT8_E5M2) LOADED(uint8_t, half_value((uint16_t)(it << 8)));
  LOADED(uint8_t, it);
}

/* value as the type holds it: wrapped, rounded or made 0 or 1. */
static inline double as_held(hvrun_type type, double value) {
  char one[8] = {0};
  if (!is_integer(type) && type != HVRUN_BOOL) return value;
  store_element(type, one, 0, value);
  return load_element(type, one, 0);
}

static inline double fold(hvrun_reduction reduction, double a, double b) {
  if (reduction == HVRUN_MIN) return a < b ? a : b;
  if (reduction == HVRUN_MAX) return a < b ? b : a;
  return reduction == HVRUN_PRODUCT ? a * b : a + b;
}

/* What all ranks must have when rank r gives values[r]. */
static inline double reduced(const hvrun_request* request, const double* values, int size) {
  const double before = request->prescale == 0 ? 1 : request->prescale;
  const double after = request->postscale == 0 ? 1 : request->postscale;
  double result = 0;
  for (int r = 0; r < size; ++r) {
    const double value = as_held(request->type, as_held(request->type, values[r]) * before);
    result = as_held(request->type, r == 0 ? value : fold(request->reduction, result, value));
  }
  result = as_held(request->type, result * after);
  return request->reduction == HVRUN_AVERAGE ? as_held(request->type, result / size) : result;
}
