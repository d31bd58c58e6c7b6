target triple = "nvptx64-nvidia-cuda"

@factor = internal addrspace(4) constant float 2.5

declare float @llvm.fabs.f32(float)

define internal float @twice(float %x) {
  %r = fadd float %x, %x
  ret float %r
}

define float @scale(float %x, i32 %n) {
  %k = load float, ptr addrspace(4) @factor
  %m = sitofp i32 %n to float
  %t = call float @twice(float %x)
  %a = call float @llvm.fabs.f32(float %t)
  %p = fmul float %a, %k
  %r = fmul float %p, %m
  ret float %r
}

define signext i16 @pick(i1 zeroext %which, i8 signext %a, i16 zeroext %b) {
  %w = sext i8 %a to i16
  %r = select i1 %which, i16 %w, i16 %b
  ret i16 %r
}

define float @window(ptr %x, i64 %n, i64 %i) {
  %last = sub i64 %n, 1
  %next = add i64 %i, 1
  %is_last = icmp sge i64 %i, %last
  %j = select i1 %is_last, i64 %i, i64 %next
  %p = getelementptr float, ptr %x, i64 %i
  %q = getelementptr float, ptr %x, i64 %j
  %a = load float, ptr %p
  %b = load float, ptr %q
  %r = fadd float %a, %b
  ret float %r
}

define void @put(ptr %x, i64 %rows, i64 %columns, i64 %s0, i64 %s1, i64 %i, i64 %j, double %v) {
  %a = mul i64 %i, %s0
  %b = mul i64 %j, %s1
  %o = add i64 %a, %b
  %p = getelementptr double, ptr %x, i64 %o
  store double %v, ptr %p
  ret void
}

define ptx_kernel void @unrelated(ptr %x) {
  store i32 7, ptr %x
  ret void
}
