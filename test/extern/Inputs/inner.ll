; A call with another calling convention than that of the function.
define internal CONVENTION float @inner(float %x, i32 %n) noinline {
  %f = sitofp i32 %n to float
  %r = fmul float %x, %f
  ret float %r
}
define float @scale(float %x, i32 %n) noinline {
  %r = call float @inner(float %x, i32 %n)
  ret float %r
}
