declare float @elsewhere(float)
define float @scale(float %x, i32 %n) {
  %r = call float @elsewhere(float %x)
  ret float %r
}
