DEFINITION
define float @scale(float %x, i32 %n) {
  %k = load i32, ptr @v
  %r = sitofp i32 %k to float
  ret float %r
}
