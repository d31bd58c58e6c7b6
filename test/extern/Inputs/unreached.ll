; LLVM allows that an instruction in a block that is never reached depends on itself.
declare i32 @llvm.smin.i32(i32, i32)
define float @scale(float %x, i32 %n) noinline {
  ret float %x
unreached:
  %a = shl i32 %a, 1
  %b = call i32 @llvm.smin.i32(i32 %a, i32 %a)
  %c = add i64 %c, 4294967296
  %d = lshr i64 %d, 32
  %e = getelementptr i8, ptr %e, i64 %c
  br label %unreached
}
