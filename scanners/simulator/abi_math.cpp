#include <cmath>

#include "scanners/simulator/abi_tables.h"
#include "scanners/simulator/call_access.h"

namespace metaldoctor {
namespace {

template <double (*F)(double)>
void real1(Call& call) {
  call.returns_real(F(call.real(0)));
}
template <double (*F)(double, double)>
void real2(Call& call) {
  call.returns_real(F(call.real(0), call.real(1)));
}
template <float (*F)(float)>
void single1(Call& call) {
  call.returns_single(F(call.single(0)));
}
template <float (*F)(float, float)>
void single2(Call& call) {
  call.returns_single(F(call.single(0), call.single(1)));
}

constexpr auto exact = Fidelity::exact;

// Results may differ from macOS's libm in the last bit.
constexpr HostFunction functions[] = {
    {"_exp", exact, real1<std::exp>},
    {"_exp2", exact, real1<std::exp2>},
    {"_log", exact, real1<std::log>},
    {"_log2", exact, real1<std::log2>},
    {"_log10", exact, real1<std::log10>},
    {"_sqrt", exact, real1<std::sqrt>},
    {"_sin", exact, real1<std::sin>},
    {"_cos", exact, real1<std::cos>},
    {"_tan", exact, real1<std::tan>},
    {"_tanh", exact, real1<std::tanh>},
    {"_floor", exact, real1<std::floor>},
    {"_ceil", exact, real1<std::ceil>},
    {"_round", exact, real1<std::round>},
    {"_pow", exact, real2<std::pow>},
    {"_fmod", exact, real2<std::fmod>},
    {"_expf", exact, single1<expf>},
    {"_exp2f", exact, single1<exp2f>},
    {"_logf", exact, single1<logf>},
    {"_log2f", exact, single1<log2f>},
    {"_log10f", exact, single1<log10f>},
    {"_sqrtf", exact, single1<sqrtf>},
    {"_sinf", exact, single1<sinf>},
    {"_cosf", exact, single1<cosf>},
    {"_tanhf", exact, single1<tanhf>},
    {"_floorf", exact, single1<floorf>},
    {"_ceilf", exact, single1<ceilf>},
    {"_roundf", exact, single1<roundf>},
    {"_powf", exact, single2<powf>},
    {"_fmodf", exact, single2<fmodf>},
    {"_ldexp", exact,
     [](Call& c) { c.returns_real(std::ldexp(c.real(0), static_cast<int>(c.arg(0)))); }},
    {"_ldexpf", exact,
     [](Call& c) { c.returns_single(ldexpf(c.single(0), static_cast<int>(c.arg(0)))); }},
};

}  // namespace

std::span<const HostFunction> math_functions() {
  return functions;
}

}  // namespace metaldoctor
