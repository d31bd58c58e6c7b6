define float @scale(float %x, i32 %n) {
  %r = call float asm "mov.f32 $0, $9;", "=f,f"(float %x)
  ret float %r
}
