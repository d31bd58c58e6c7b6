define CONVENTION float @scale(float %x, i32 %n) noinline {
  %f = sitofp i32 %n to float
  %r = fmul float %x, %f
  ret float %r
}
define float @window(ptr BYVAL %x, i64 %n, i64 %i) noinline {
  %p = getelementptr float, ptr %x, i64 %i
  %r = load float, ptr %p
  ret float %r
}
