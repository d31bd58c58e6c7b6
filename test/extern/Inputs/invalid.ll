define float @scale(float %x, i32 %n) {
entry:
  br label %next
next:
  %a = fadd float %b, %x
  %b = fadd float %x, %x
  ret float %a
}
