target triple = "x86_64-unknown-linux-gnu"
define float @scale(float %x, i32 %n) {
  ret float %x
}
