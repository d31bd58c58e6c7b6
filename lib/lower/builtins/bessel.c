/* Bessel functions of high order n, for every target. The time of these functions is bounded for
 * every n and x. The functions of the math libraries need n steps of a recurrence, up to 2^31
 * steps.
 *
 * If x is far from n, Debye's expansions give the value (NIST DLMF 10.19.3 and 10.19.6). Let p be
 * the order, s = sqrt(|p^2 - x^2|) and t = p/s. Term k of an expansion is u_k(t) / p^k, where u_k
 * is a polynomial. Every u_k(t) is t^k v_k(t^2), so the term is v_k(+-t^2) / s^k. If x is near n, a
 * recurrence over the order computes the value. It starts at an order for which the expansion is
 * accurate enough, and ends at n. The recurrence is stable downwards for jn and upwards for yn. It
 * has at most about 22 n^(1/3) steps, which is 30,000 for the largest n. */
#include <math.h>
#include <string.h>

#include "lower/instruction.h"

enum { TERMS = 9 /* number of terms in an expansion */, KIND_COUNT = 2 };

static const double PI = 3.141592653589793;
/* The recurrence is used if |x - n| < NEAR n^(1/3). It starts at an order whose distance from x is
 * BEGIN * NEAR n^(1/3). */
static const double NEAR = 9.5, BEGIN = 1.25;

/* The coefficients of v_k, by DLMF 10.41.9. */
static const double terms[TERMS][TERMS] = {
  { 1.0 },
  { 0.125, -0.20833333333333334 },
  { 0.0703125, -0.4010416666666667, 0.3342013888888889 },
  { 0.0732421875, -0.8912109375, 1.8464626736111112, -1.0258125964506173 },
  { 0.112152099609375, -2.3640869140625, 8.78912353515625, -11.207002616222994, 4.669584423426247 },
  { 0.22710800170898438, -7.368794359479632, 42.53499874538846, -91.81824154324002,
    84.63621767460073, -28.212072558200244 },
  { 0.5725014209747314, -26.491430486951554, 218.1905117442116, -699.5796273761325,
    1059.9904525279999, -765.2524681411817, 212.57013003921713 },
  { 1.7277275025844574, -108.09091978839466, 1200.9029132163525, -5305.646978613403,
    11655.393336864534, -13586.550006434138, 8061.722181737309, -1919.457662318407 },
  { 6.074042001273483, -493.915304773088, 7109.514302489364, -41192.65496889755, 122200.46498301746,
    -203400.17728041555, 192547.00123253153, -96980.59838863752, 20204.29133096615 },
};

typedef LLVMValueRef value;

/* The function that is being built. */
typedef struct bessel {
  kl_lowering *l;
  value function, x, order; /* order is an f64 */
  bool is_second;           /* true for yn, false for jn */
} bessel;

static value real(const bessel *f, double x) { return LLVMConstReal(f->l->f64, x); }

static value call(const bessel *f, ki_builtin_id id, value x)
{
  return f->l->target->math(f->l, id, &x, 1, f->l->f64);
}

static value root(const bessel *f, value x) { return kl_intrinsic1(f->l, "llvm.sqrt", x); }

/* ---- the expansion ---- */

/* Returns the sum of terms_of[k] * ratio^i for k = first, first + step and so on, where i is 0, 1
 * and so on. */
static value add_terms(const bessel *f, value const *terms_of, int first, int step, value ratio)
{
  int k = TERMS - 1;
  while (k % step != first) k--;
  value sum = terms_of[k];
  while ((k -= step) >= 0) sum = kl_fadd(f->l, kl_fmul(f->l, sum, ratio), terms_of[k]);
  return sum;
}

static void compute_terms(const bessel *f, value square, value *terms_of)
{
  for (int k = 0; k < TERMS; k++) {
    terms_of[k] = real(f, terms[k][k]);
    for (int i = k; i-- > 0;)
      terms_of[k] = kl_fadd(f->l, kl_fmul(f->l, terms_of[k], square), real(f, terms[k][i]));
  }
}

/* Returns s - p acosh(p/x), or s - p acos(p/x) if x > p. `direct` is this formula's value, which
 * loses digits by cancellation if x is near p. In that case, the function computes the series -s q
 * (1/3 + q/5 + q^2/7 ...) with q = (p^2 - x^2) / p^2 instead. */
static value find_exponent(const bessel *f, value p, value s, value direct)
{
  enum { COUNT = 12 };
  static const double most = 1.0 / 16;
  kl_lowering *l = f->l;
  value y = kl_fdiv(l, s, p), square = kl_fmul(l, y, y);
  value q = kl_select(l, kl_fcmp(l, LLVMRealOLT, f->x, p), square, kl_fneg(l, square)),
        sum = real(f, 1.0 / (2 * COUNT + 3));
  for (int k = COUNT; k-- > 0;) sum = kl_fadd(l, kl_fmul(l, sum, q), real(f, 1.0 / (2 * k + 3)));
  value series = kl_fneg(l, kl_fmul(l, kl_fmul(l, s, q), sum));
  return kl_select(l, kl_fcmp(l, LLVMRealOLT, square, real(f, most)), series, direct);
}

/* Computes the expansion for x < p, which has the factor exp(+-(s - p acosh(p/x))). acosh is a
 * logarithm; it is computed by log1p, because the argument of the logarithm is near 1. */
static value expand_below(const bessel *f, value p, value s, value const *terms_of)
{
  kl_lowering *l = f->l;
  double sign = f->is_second ? -1 : 1;
  value excess = kl_fdiv(l, kl_fadd(l, kl_fsub(l, p, f->x), s), f->x);
  value direct = kl_fsub(l, s, kl_fmul(l, p, call(f, KJ_BUILTIN_LOG1P, excess)));
  value exponent = find_exponent(f, p, s, direct);
  value power = call(f, KJ_BUILTIN_EXP, kl_fmul(l, exponent, real(f, sign)));
  value sum = add_terms(f, terms_of, 0, 1, kl_fdiv(l, real(f, sign), s));
  value scale = root(f, kl_fdiv(l, real(f, f->is_second ? 2 / PI : 0.5 / PI), s));
  return kl_fmul(l, power, kl_fmul(l, kl_fmul(l, sum, real(f, sign)), scale));
}

typedef struct turned {
  value cosine, sine;
} turned;

static turned turn_by(const bessel *f, turned a, turned b)
{
  kl_lowering *l = f->l;
  return (turned){ kl_fsub(l, kl_fmul(l, a.cosine, b.cosine), kl_fmul(l, a.sine, b.sine)),
                   kl_fadd(l, kl_fmul(l, a.sine, b.cosine), kl_fmul(l, a.cosine, b.sine)) };
}

/* Rotates the point back by p quarter turns. */
static turned turn_back(const bessel *f, turned at, value p)
{
  kl_lowering *l = f->l;
  value quarters = LLVMBuildFPToSI(kl_next(l), p, l->i64, "");
  value is_odd = kl_icmp(l, LLVMIntNE, kl_and(l, quarters, kl_const64(l, 1)), kl_const64(l, 0)),
        is_half = kl_icmp(l, LLVMIntNE, kl_and(l, quarters, kl_const64(l, 2)), kl_const64(l, 0));
  turned odd = { kl_select(l, is_odd, at.sine, at.cosine),
                 kl_select(l, is_odd, kl_fneg(l, at.cosine), at.sine) };
  return (turned){ kl_select(l, is_half, kl_fneg(l, odd.cosine), odd.cosine),
                   kl_select(l, is_half, kl_fneg(l, odd.sine), odd.sine) };
}

/* Returns the cosine and sine of the phase s - p acos(p/x) - pi/4. For a large x, the cosine and
 * sine of x itself come from the math library, which reduces x exactly. The remaining part of the
 * phase, p (asin(r) - r / (1 + sqrt(1 - r^2))) with r = p/x, is smaller than p. */
static turned find_phase(const bessel *f, value p, value s)
{
  kl_lowering *l = f->l;
  value is_large = kl_fcmp(l, LLVMRealOGE, f->x, kl_fmul(l, p, real(f, 2)));
  value direct = kl_fsub(l, s, kl_fmul(l, p, call(f, KJ_BUILTIN_ATAN, kl_fdiv(l, s, p))));
  value close = find_exponent(f, p, s, direct);
  value r = kl_select(l, is_large, kl_fdiv(l, p, f->x), real(f, 0)),
        rest = root(f, kl_fsub(l, real(f, 1), kl_fmul(l, r, r)));
  value wide =
    kl_fmul(l, p,
            kl_fsub(l, call(f, KJ_BUILTIN_ASIN, r), kl_fdiv(l, r, kl_fadd(l, real(f, 1), rest))));
  value angle = kl_fsub(l, kl_select(l, is_large, wide, close), real(f, PI / 4)),
        far = kl_select(l, is_large, f->x, real(f, 0));
  turned reduced = { call(f, KJ_BUILTIN_COS, far), call(f, KJ_BUILTIN_SIN, far) },
         small = { call(f, KJ_BUILTIN_COS, angle), call(f, KJ_BUILTIN_SIN, angle) };
  turned back = turn_back(f, reduced, kl_select(l, is_large, p, real(f, 0)));
  return turn_by(f, back, small);
}

/* Computes the expansion for x >= p. */
static value expand_above(const bessel *f, value p, value s, value const *terms_of)
{
  kl_lowering *l = f->l;
  turned phase = find_phase(f, p, s);
  value ratio = kl_fdiv(l, real(f, 1), s), square = kl_fneg(l, kl_fmul(l, ratio, ratio));
  value even = add_terms(f, terms_of, 0, 2, square),
        odd = kl_fmul(l, add_terms(f, terms_of, 1, 2, square), ratio);
  value sum = f->is_second
                ? kl_fsub(l, kl_fmul(l, even, phase.sine), kl_fmul(l, odd, phase.cosine))
                : kl_fadd(l, kl_fmul(l, even, phase.cosine), kl_fmul(l, odd, phase.sine));
  return kl_fmul(l, sum, root(f, kl_fdiv(l, real(f, 2 / PI), s)));
}

static value expand(const bessel *f, value p)
{
  kl_lowering *l = f->l;
  value is_below = kl_fcmp(l, LLVMRealOLT, f->x, p),
        s = kl_fmul(l, root(f, kl_fabs(l, kl_fsub(l, p, f->x))), root(f, kl_fadd(l, p, f->x)));
  value t = kl_fdiv(l, p, s), square = kl_fmul(l, t, t), terms_of[TERMS], values[2];
  compute_terms(f, kl_select(l, is_below, square, kl_fneg(l, square)), terms_of);
  LLVMBasicBlockRef below = kl_new_block(l, "below"), above = kl_new_block(l, "above"),
                    end = kl_new_block(l, "expanded"), from[2];
  kl_go_on_if(l, is_below, below, above);
  values[0] = expand_below(f, p, s, terms_of);
  from[0] = kl_here(l);
  kl_br(l, end);
  kl_move_to(l, above);
  values[1] = expand_above(f, p, s, terms_of);
  from[1] = kl_here(l);
  kl_go_on_in(l, end);
  return kl_join(l, values[0], from[0], values[1], from[1]);
}

/* ---- the recurrence ---- */

/* Runs the recurrence from the orders first + step and first to the order of the function. Each
 * step adds to the difference of two adjacent values. The added term is 2 (k - x) / x times a
 * value, which is small, so the rounding errors are small. */
static value recur(const bessel *f, value first, value beyond, value at_first)
{
  kl_lowering *l = f->l;
  value step = real(f, f->is_second ? 1 : -1), per_x = kl_fdiv(l, real(f, 2), f->x);
  LLVMBasicBlockRef before = kl_here(l), head = kl_new_block(l, "recurrence"),
                    body = kl_new_block(l, "step"), end = kl_new_block(l, "reached");
  value begin = kl_fsub(l, at_first, beyond);
  kl_go_on_in(l, head);
  value k = kl_phi(l, l->f64), current = kl_phi(l, l->f64), difference = kl_phi(l, l->f64);
  LLVMRealPredicate goes_on = f->is_second ? LLVMRealOLT : LLVMRealOGT;
  kl_go_on_if(l, kl_fcmp(l, goes_on, k, f->order), body, end);
  kl_move_to(l, body);
  value factor = kl_fmul(l, kl_fsub(l, k, f->x), per_x);
  value next_difference = kl_fadd(l, difference, kl_fmul(l, factor, current));
  value next = kl_fadd(l, current, next_difference), next_k = kl_fadd(l, k, step);
  kl_br(l, head);
  LLVMBasicBlockRef from[2] = { before, body };
  LLVMAddIncoming(k, (value[]){ first, next_k }, from, 2);
  LLVMAddIncoming(current, (value[]){ at_first, next }, from, 2);
  LLVMAddIncoming(difference, (value[]){ begin, next_difference }, from, 2);
  kl_move_to(l, end);
  return current;
}

static value compute_near(const bessel *f, value distance)
{
  kl_lowering *l = f->l;
  value away = kl_fmul(l, distance, real(f, BEGIN));
  value first = f->is_second ? kl_intrinsic1(l, "llvm.floor", kl_fsub(l, f->x, away))
                             : kl_intrinsic1(l, "llvm.ceil", kl_fadd(l, f->x, away));
  value beyond = expand(f, kl_fadd(l, first, real(f, f->is_second ? -1 : 1)));
  return recur(f, first, beyond, expand(f, first));
}

/* ---- the function ---- */

/* Computes the value for order > KL_LOW_ORDERS and x >= 0 or NaN. */
static value compute(const bessel *f)
{
  kl_lowering *l = f->l;
  value distance = kl_fmul(l, call(f, KJ_BUILTIN_CBRT, f->order), real(f, NEAR)), values[2];
  value is_near = kl_fcmp(l, LLVMRealOLT, kl_fabs(l, kl_fsub(l, f->x, f->order)), distance);
  LLVMBasicBlockRef near = kl_new_block(l, "near"), far = kl_new_block(l, "far"),
                    end = kl_new_block(l, "end"), from[2];
  kl_go_on_if(l, is_near, near, far);
  values[0] = compute_near(f, distance);
  from[0] = kl_here(l);
  kl_br(l, end);
  kl_move_to(l, far);
  values[1] = expand(f, f->order);
  from[1] = kl_here(l);
  kl_go_on_in(l, end);
  return kl_join(l, values[0], from[0], values[1], from[1]);
}

/* Builds the function for any x: jn(n, -x) is (-1)^n jn(n, x), and yn(n, -x) is NaN. At infinity
 * both are 0. */
static void fill(bessel *f)
{
  kl_lowering *l = f->l;
  value n = LLVMGetParam(f->function, 0), x = LLVMGetParam(f->function, 1);
  kl_move_to(l, kl_new_block(l, "entry"));
  f->order = kl_sitofp(l, n, l->f64);
  f->x = kl_fabs(l, x);
  value is_negative = kl_fcmp(l, LLVMRealOLT, x, real(f, 0)),
        is_odd = kl_icmp(l, LLVMIntNE, kl_and(l, n, kl_const32(l, 1)), kl_const32(l, 0));
  value result = compute(f);
  result = kl_select(l, kl_is_infinite(l, x), real(f, 0), result);
  value reflected = f->is_second ? real(f, NAN) : kl_select(l, is_odd, kl_fneg(l, result), result);
  LLVMBuildRet(kl_next(l), kl_select(l, is_negative, reflected, result));
}

/* Returns the function for jn or yn. A module contains the function once, and a second time if
 * functions with @fastmath call it. */
static value get_function(kl_lowering *l, bool is_second)
{
  bool is_fast = l->frame->instance->modes.is_fastmath;
  const char *name =
    kj_format(l->c->arena, "kjit_high_%s%s", is_second ? "yn" : "jn", is_fast ? "_fast" : "");
  value known = LLVMGetNamedFunction(l->module, name), outer = l->function;
  if (known) return known;
  LLVMTypeRef params[] = { l->i32, l->f64 };
  value function = LLVMAddFunction(l->module, name, LLVMFunctionType(l->f64, params, 2, false));
  LLVMSetLinkage(function, LLVMInternalLinkage);
  static const char *const attributes[] = { "nounwind", "noinline", "willreturn", "memory" };
  for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
    kl_add_attribute(l, function, (unsigned)LLVMAttributeFunctionIndex, attributes[i], 0);
  bessel f = { .l = l, .function = function, .is_second = is_second };
  LLVMBasicBlockRef here = kl_here(l);
  LLVMMetadataRef place = LLVMGetCurrentDebugLocation2(l->builder);
  LLVMSetCurrentDebugLocation2(l->builder, NULL);
  l->function = function;
  fill(&f);
  l->function = outer;
  kl_move_to(l, here);
  LLVMSetCurrentDebugLocation2(l->builder, place);
  return function;
}

value kl_build_high_bessel(kl_lowering *l, bool is_second, value n, value x)
{
  LLVMTypeRef type = LLVMTypeOf(x);
  bool is_float = type == l->f32;
  value function = get_function(l, is_second),
        args[] = { n, is_float ? kl_fpext(l, x, l->f64) : x };
  value result = kl_call(l, LLVMGlobalGetValueType(function), function, args, 2);
  return is_float ? kl_fptrunc(l, result, type) : result;
}
