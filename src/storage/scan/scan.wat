;; Vector scans: compute one f64 for each row, from rows of f32 (exact-scorer.ts) or of
;; 8-bit integers (segment.ts).
;;
;; The build compiles this file twice: for a memory of one thread, and for a shared memory.
;;
;; Layout of the imported memory, which the callers fill:
;;
;;   query   f64[p] or i16[p]    p = dimension rounded up to a multiple of 4 or 16
;;   out     f64[count]          one result per row
;;   slots   u32[count]          the rows to read; address 0 means rows 0, 1, 2 ...
;;   rows    f32[n][p] or i8     row s starts at rows + s * strideBytes
;;
;; Lanes past the dimension are zero in the query and in every row. They do not change the
;; results, so no kernel needs a separate loop for the remaining lanes of a row.
;;
;; A product of two f32 is exact in f64 and no sum of 16,384 of them overflows, so the
;; only rounding is that of f64 addition. Each row has its own accumulators, so its
;; result does not depend on its position or on other rows: it is bit-identical.
;;
;; Rows are processed four at a time, one from each quarter of the list. A large scan is
;; limited by memory latency, and four streams in distant pages keep more reads in flight
;; than one (100,000 rows of 384 lanes: 13 ms instead of 24 ms).

(module
  (import "scan" "memory" (memory 1 65536))

  (type $kernel (func
    (param $query i32) (param $a i32) (param $b i32) (param $c i32) (param $d i32)
    (param $strideBytes i32)
    (result f64 f64 f64 f64)))

  (table funcref (elem $dot4 $squaredDistance4 $quantizedDot4))

  ;; out[i] = sum over the lanes of query * row
  (func (export "dot")
    (param $query i32) (param $rows i32) (param $slots i32) (param $count i32)
    (param $strideBytes i32) (param $out i32)
    (call $scan (i32.const 0) (local.get $query) (local.get $rows) (local.get $slots)
      (local.get $count) (local.get $strideBytes) (local.get $out)))

  ;; out[i] = sum over the lanes of (query - row) squared
  (func (export "squaredDistance")
    (param $query i32) (param $rows i32) (param $slots i32) (param $count i32)
    (param $strideBytes i32) (param $out i32)
    (call $scan (i32.const 1) (local.get $query) (local.get $rows) (local.get $slots)
      (local.get $count) (local.get $strideBytes) (local.get $out)))

  ;; out[i] = sum over the lanes of query * row, for integers
  (func (export "quantizedDot")
    (param $query i32) (param $rows i32) (param $slots i32) (param $count i32)
    (param $strideBytes i32) (param $out i32)
    (call $scan (i32.const 2) (local.get $query) (local.get $rows) (local.get $slots)
      (local.get $count) (local.get $strideBytes) (local.get $out)))

  ;; Like quantizedDot, for rows in order. Processes two rows at a time, one from each half; see
  ;; $scan. Faster than $scan: it has no calls per row, and four rows at a time take longer.
  (func (export "quantizedDotInOrder")
    (param $query i32) (param $rows i32) (param $count i32) (param $strideBytes i32) (param $out i32)
    (local $left i32) (local $apart i32) (local $apartBytes i32) (local $end i32)
    (local $a i32) (local $b i32) (local $q i32)
    (local $low v128) (local $high v128) (local $sumA v128) (local $sumB v128)
    (if (i32.eqz (local.get $count)) (then (return)))
    (local.set $left (i32.shr_u (i32.add (local.get $count) (i32.const 1)) (i32.const 1)))
    (local.set $apart (i32.sub (local.get $count) (local.get $left)))
    (local.set $apartBytes (i32.mul (local.get $apart) (local.get $strideBytes)))
    (local.set $apart (i32.shl (local.get $apart) (i32.const 3)))
    (local.set $a (local.get $rows))
    (loop $next
      (local.set $sumA (v128.const i32x4 0 0 0 0))
      (local.set $sumB (v128.const i32x4 0 0 0 0))
      (local.set $q (local.get $query))
      (local.set $b (i32.add (local.get $a) (local.get $apartBytes)))
      (local.set $end (i32.add (local.get $a) (local.get $strideBytes)))
      (loop $lanes
        (local.set $low (v128.load (local.get $q)))
        (local.set $high (v128.load offset=16 (local.get $q)))
        (local.set $sumA (i32x4.add (local.get $sumA) (i32x4.add
          (i32x4.dot_i16x8_s (v128.load8x8_s (local.get $a)) (local.get $low))
          (i32x4.dot_i16x8_s (v128.load8x8_s offset=8 (local.get $a)) (local.get $high)))))
        (local.set $sumB (i32x4.add (local.get $sumB) (i32x4.add
          (i32x4.dot_i16x8_s (v128.load8x8_s (local.get $b)) (local.get $low))
          (i32x4.dot_i16x8_s (v128.load8x8_s offset=8 (local.get $b)) (local.get $high)))))
        (local.set $q (i32.add (local.get $q) (i32.const 32)))
        (local.set $a (i32.add (local.get $a) (i32.const 16)))
        (local.set $b (i32.add (local.get $b) (i32.const 16)))
        (br_if $lanes (i32.ne (local.get $a) (local.get $end))))
      (f64.store (local.get $out) (call $sumIntegers (local.get $sumA)))
      (f64.store (i32.add (local.get $out) (local.get $apart)) (call $sumIntegers (local.get $sumB)))
      (local.set $out (i32.add (local.get $out) (i32.const 8)))
      (br_if $next (local.tee $left (i32.sub (local.get $left) (i32.const 1))))))

  ;; Like quantizedDotInOrder, for two queries, the second of which follows the first. Widens each
  ;; row once for both queries. The results of the second query are outBytes after those of the
  ;; first.
  (func (export "quantizedDotPair")
    (param $query i32) (param $rows i32) (param $count i32) (param $strideBytes i32)
    (param $out i32) (param $outBytes i32)
    (local $left i32) (local $apart i32) (local $apartBytes i32) (local $queryBytes i32)
    (local $end i32) (local $a i32) (local $b i32) (local $q i32) (local $r i32)
    (local $low v128) (local $high v128)
    (local $lowQ v128) (local $highQ v128) (local $lowR v128) (local $highR v128)
    (local $sumAQ v128) (local $sumAR v128) (local $sumBQ v128) (local $sumBR v128)
    (if (i32.eqz (local.get $count)) (then (return)))
    (local.set $queryBytes (i32.shl (local.get $strideBytes) (i32.const 1)))
    (local.set $left (i32.shr_u (i32.add (local.get $count) (i32.const 1)) (i32.const 1)))
    (local.set $apart (i32.sub (local.get $count) (local.get $left)))
    (local.set $apartBytes (i32.mul (local.get $apart) (local.get $strideBytes)))
    (local.set $apart (i32.shl (local.get $apart) (i32.const 3)))
    (local.set $a (local.get $rows))
    (loop $next
      (local.set $sumAQ (v128.const i32x4 0 0 0 0))
      (local.set $sumAR (v128.const i32x4 0 0 0 0))
      (local.set $sumBQ (v128.const i32x4 0 0 0 0))
      (local.set $sumBR (v128.const i32x4 0 0 0 0))
      (local.set $q (local.get $query))
      (local.set $r (i32.add (local.get $query) (local.get $queryBytes)))
      (local.set $b (i32.add (local.get $a) (local.get $apartBytes)))
      (local.set $end (i32.add (local.get $a) (local.get $strideBytes)))
      (loop $lanes
        (local.set $lowQ (v128.load (local.get $q)))
        (local.set $highQ (v128.load offset=16 (local.get $q)))
        (local.set $lowR (v128.load (local.get $r)))
        (local.set $highR (v128.load offset=16 (local.get $r)))
        (local.set $low (v128.load8x8_s (local.get $a)))
        (local.set $high (v128.load8x8_s offset=8 (local.get $a)))
        (local.set $sumAQ (i32x4.add (local.get $sumAQ) (i32x4.add
          (i32x4.dot_i16x8_s (local.get $low) (local.get $lowQ))
          (i32x4.dot_i16x8_s (local.get $high) (local.get $highQ)))))
        (local.set $sumAR (i32x4.add (local.get $sumAR) (i32x4.add
          (i32x4.dot_i16x8_s (local.get $low) (local.get $lowR))
          (i32x4.dot_i16x8_s (local.get $high) (local.get $highR)))))
        (local.set $low (v128.load8x8_s (local.get $b)))
        (local.set $high (v128.load8x8_s offset=8 (local.get $b)))
        (local.set $sumBQ (i32x4.add (local.get $sumBQ) (i32x4.add
          (i32x4.dot_i16x8_s (local.get $low) (local.get $lowQ))
          (i32x4.dot_i16x8_s (local.get $high) (local.get $highQ)))))
        (local.set $sumBR (i32x4.add (local.get $sumBR) (i32x4.add
          (i32x4.dot_i16x8_s (local.get $low) (local.get $lowR))
          (i32x4.dot_i16x8_s (local.get $high) (local.get $highR)))))
        (local.set $q (i32.add (local.get $q) (i32.const 32)))
        (local.set $r (i32.add (local.get $r) (i32.const 32)))
        (local.set $a (i32.add (local.get $a) (i32.const 16)))
        (local.set $b (i32.add (local.get $b) (i32.const 16)))
        (br_if $lanes (i32.ne (local.get $a) (local.get $end))))
      (f64.store (local.get $out) (call $sumIntegers (local.get $sumAQ)))
      (f64.store (i32.add (local.get $out) (local.get $apart)) (call $sumIntegers (local.get $sumBQ)))
      (f64.store (i32.add (local.get $out) (local.get $outBytes)) (call $sumIntegers (local.get $sumAR)))
      (f64.store (i32.add (i32.add (local.get $out) (local.get $outBytes)) (local.get $apart))
        (call $sumIntegers (local.get $sumBR)))
      (local.set $out (i32.add (local.get $out) (i32.const 8)))
      (br_if $next (local.tee $left (i32.sub (local.get $left) (i32.const 1))))))

  ;; Sum of the squares of one row: the result of dot4 if the query is the row itself.
  (func (export "squaredNorm") (param $row i32) (param $strideBytes i32) (result f64)
    (local $end i32) (local $x v128) (local $p v128) (local $r v128)
    (local.set $end (i32.add (local.get $row) (local.get $strideBytes)))
    (loop $lanes
      (local.set $x (f64x2.promote_low_f32x4 (v128.load64_zero (local.get $row))))
      (local.set $p (f64x2.add (local.get $p) (f64x2.mul (local.get $x) (local.get $x))))
      (local.set $x (f64x2.promote_low_f32x4 (v128.load64_zero offset=8 (local.get $row))))
      (local.set $r (f64x2.add (local.get $r) (f64x2.mul (local.get $x) (local.get $x))))
      (local.set $row (i32.add (local.get $row) (i32.const 16)))
      (br_if $lanes (i32.ne (local.get $row) (local.get $end))))
    (call $sum (local.get $p) (local.get $r)))

  ;; Writes a row of f32 as i8 levels from -127 to 127, and returns the scale, which is the
  ;; largest magnitude divided by 127, and the sum of the squares of row - scale * level.
  ;; The levels are rounded in f32; the sum measures the levels that are written.
  (func (export "quantize")
    (param $row i32) (param $strideBytes i32) (param $out i32)
    (result f64 f64)
    (local $end i32) (local $at i32) (local $x v128) (local $max v128) (local $inverse v128)
    (local $levels v128) (local $step v128) (local $gap v128) (local $p v128) (local $r v128)
    (local $greatest f32)
    (local.set $end (i32.add (local.get $row) (local.get $strideBytes)))
    (local.set $at (local.get $row))
    (loop $lanes
      (local.set $max (f32x4.pmax (local.get $max) (f32x4.abs (v128.load (local.get $at)))))
      (local.set $at (i32.add (local.get $at) (i32.const 16)))
      (br_if $lanes (i32.ne (local.get $at) (local.get $end))))
    (local.set $greatest (f32.max
      (f32.max (f32x4.extract_lane 0 (local.get $max)) (f32x4.extract_lane 1 (local.get $max)))
      (f32.max (f32x4.extract_lane 2 (local.get $max)) (f32x4.extract_lane 3 (local.get $max)))))
    (local.set $inverse (f32x4.splat (f32.div (f32.const 127) (local.get $greatest))))
    (local.set $step (f64x2.splat (f64.div (f64.promote_f32 (local.get $greatest)) (f64.const 127))))
    (loop $lanes
      (local.set $x (v128.load (local.get $row)))
      (local.set $levels (i32x4.trunc_sat_f32x4_s
        (f32x4.nearest (f32x4.mul (local.get $x) (local.get $inverse)))))
      (local.set $levels (i32x4.max_s (i32x4.min_s (local.get $levels)
        (v128.const i32x4 127 127 127 127)) (v128.const i32x4 -127 -127 -127 -127)))
      (local.set $gap (f64x2.sub (f64x2.promote_low_f32x4 (local.get $x))
        (f64x2.mul (local.get $step) (f64x2.convert_low_i32x4_s (local.get $levels)))))
      (local.set $p (f64x2.add (local.get $p) (f64x2.mul (local.get $gap) (local.get $gap))))
      (local.set $gap (f64x2.sub
        (f64x2.promote_low_f32x4 (i8x16.shuffle 8 9 10 11 12 13 14 15 8 9 10 11 12 13 14 15
          (local.get $x) (local.get $x)))
        (f64x2.mul (local.get $step) (f64x2.convert_low_i32x4_s
          (i8x16.shuffle 8 9 10 11 12 13 14 15 8 9 10 11 12 13 14 15
            (local.get $levels) (local.get $levels))))))
      (local.set $r (f64x2.add (local.get $r) (f64x2.mul (local.get $gap) (local.get $gap))))
      (i32.store (local.get $out) (i32x4.extract_lane 0
        (i8x16.shuffle 0 4 8 12 0 4 8 12 0 4 8 12 0 4 8 12 (local.get $levels) (local.get $levels))))
      (local.set $out (i32.add (local.get $out) (i32.const 4)))
      (local.set $row (i32.add (local.get $row) (i32.const 16)))
      (br_if $lanes (i32.ne (local.get $row) (local.get $end))))
    (f64x2.extract_lane 0 (local.get $step))
    (call $sum (local.get $p) (local.get $r)))

  ;; The quarters start at rows 0, j, k and l. If count is not a multiple of four, they
  ;; overlap so that none ends past count. A row in two quarters is computed twice.
  (func $scan
    (param $kernel i32) (param $query i32) (param $rows i32) (param $slots i32) (param $count i32)
    (param $strideBytes i32) (param $out i32)
    (local $left i32) (local $i i32) (local $j i32) (local $k i32) (local $l i32)
    (local $atI f64) (local $atJ f64) (local $atK f64) (local $atL f64)
    (if (i32.eqz (local.get $count)) (then (return)))
    (local.set $left (i32.shr_u (i32.add (local.get $count) (i32.const 3)) (i32.const 2)))
    (local.set $l (i32.sub (local.get $count) (local.get $left)))
    (local.set $j (call $lesser (local.get $left) (local.get $l)))
    (local.set $k (call $lesser (i32.shl (local.get $left) (i32.const 1)) (local.get $l)))
    (loop $next
      (call_indirect (type $kernel)
        (local.get $query)
        (call $row (local.get $rows) (local.get $slots) (local.get $i) (local.get $strideBytes))
        (call $row (local.get $rows) (local.get $slots) (local.get $j) (local.get $strideBytes))
        (call $row (local.get $rows) (local.get $slots) (local.get $k) (local.get $strideBytes))
        (call $row (local.get $rows) (local.get $slots) (local.get $l) (local.get $strideBytes))
        (local.get $strideBytes)
        (local.get $kernel))
      (local.set $atL) (local.set $atK) (local.set $atJ) (local.set $atI)
      (f64.store (i32.add (local.get $out) (i32.shl (local.get $i) (i32.const 3))) (local.get $atI))
      (f64.store (i32.add (local.get $out) (i32.shl (local.get $j) (i32.const 3))) (local.get $atJ))
      (f64.store (i32.add (local.get $out) (i32.shl (local.get $k) (i32.const 3))) (local.get $atK))
      (f64.store (i32.add (local.get $out) (i32.shl (local.get $l) (i32.const 3))) (local.get $atL))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (local.set $j (i32.add (local.get $j) (i32.const 1)))
      (local.set $k (i32.add (local.get $k) (i32.const 1)))
      (local.set $l (i32.add (local.get $l) (i32.const 1)))
      (br_if $next (local.tee $left (i32.sub (local.get $left) (i32.const 1))))))

  (func $lesser (param $x i32) (param $y i32) (result i32)
    (select (local.get $x) (local.get $y) (i32.lt_u (local.get $x) (local.get $y))))

  ;; Address of the `i`th row to process.
  (func $row (param $rows i32) (param $slots i32) (param $i i32) (param $strideBytes i32) (result i32)
    (if (local.get $slots)
      (then (local.set $i
        (i32.load (i32.add (local.get $slots) (i32.shl (local.get $i) (i32.const 2)))))))
    (i32.add (local.get $rows) (i32.mul (local.get $i) (local.get $strideBytes))))

  ;; Dot products of the query with rows a, b, c, d. Each row has two accumulators: p for
  ;; the first two lanes of every four and r for the last two. The loop compares with `ne`,
  ;; because a row that ends at 4 GiB has end address 0. load64_zero and promote_low
  ;; compile to one widening load.
  (func $dot4
    (param $query i32) (param $a i32) (param $b i32) (param $c i32) (param $d i32)
    (param $strideBytes i32)
    (result f64 f64 f64 f64)
    (local $end i32) (local $q v128)
    (local $pa v128) (local $pb v128) (local $pc v128) (local $pd v128)
    (local $ra v128) (local $rb v128) (local $rc v128) (local $rd v128)
    (local.set $end (i32.add (local.get $a) (local.get $strideBytes)))
    (loop $lanes
      (local.set $q (v128.load (local.get $query)))
      (local.set $pa (f64x2.add (local.get $pa) (f64x2.mul (local.get $q)
        (f64x2.promote_low_f32x4 (v128.load64_zero (local.get $a))))))
      (local.set $pb (f64x2.add (local.get $pb) (f64x2.mul (local.get $q)
        (f64x2.promote_low_f32x4 (v128.load64_zero (local.get $b))))))
      (local.set $pc (f64x2.add (local.get $pc) (f64x2.mul (local.get $q)
        (f64x2.promote_low_f32x4 (v128.load64_zero (local.get $c))))))
      (local.set $pd (f64x2.add (local.get $pd) (f64x2.mul (local.get $q)
        (f64x2.promote_low_f32x4 (v128.load64_zero (local.get $d))))))
      (local.set $q (v128.load offset=16 (local.get $query)))
      (local.set $ra (f64x2.add (local.get $ra) (f64x2.mul (local.get $q)
        (f64x2.promote_low_f32x4 (v128.load64_zero offset=8 (local.get $a))))))
      (local.set $rb (f64x2.add (local.get $rb) (f64x2.mul (local.get $q)
        (f64x2.promote_low_f32x4 (v128.load64_zero offset=8 (local.get $b))))))
      (local.set $rc (f64x2.add (local.get $rc) (f64x2.mul (local.get $q)
        (f64x2.promote_low_f32x4 (v128.load64_zero offset=8 (local.get $c))))))
      (local.set $rd (f64x2.add (local.get $rd) (f64x2.mul (local.get $q)
        (f64x2.promote_low_f32x4 (v128.load64_zero offset=8 (local.get $d))))))
      (local.set $query (i32.add (local.get $query) (i32.const 32)))
      (local.set $a (i32.add (local.get $a) (i32.const 16)))
      (local.set $b (i32.add (local.get $b) (i32.const 16)))
      (local.set $c (i32.add (local.get $c) (i32.const 16)))
      (local.set $d (i32.add (local.get $d) (i32.const 16)))
      (br_if $lanes (i32.ne (local.get $a) (local.get $end))))
    (call $sum (local.get $pa) (local.get $ra))
    (call $sum (local.get $pb) (local.get $rb))
    (call $sum (local.get $pc) (local.get $rc))
    (call $sum (local.get $pd) (local.get $rd)))

  ;; Like dot4, for squared distances.
  (func $squaredDistance4
    (param $query i32) (param $a i32) (param $b i32) (param $c i32) (param $d i32)
    (param $strideBytes i32)
    (result f64 f64 f64 f64)
    (local $end i32) (local $q v128) (local $gap v128)
    (local $pa v128) (local $pb v128) (local $pc v128) (local $pd v128)
    (local $ra v128) (local $rb v128) (local $rc v128) (local $rd v128)
    (local.set $end (i32.add (local.get $a) (local.get $strideBytes)))
    (loop $lanes
      (local.set $q (v128.load (local.get $query)))
      (local.set $gap (f64x2.sub (local.get $q) (f64x2.promote_low_f32x4 (v128.load64_zero (local.get $a)))))
      (local.set $pa (f64x2.add (local.get $pa) (f64x2.mul (local.get $gap) (local.get $gap))))
      (local.set $gap (f64x2.sub (local.get $q) (f64x2.promote_low_f32x4 (v128.load64_zero (local.get $b)))))
      (local.set $pb (f64x2.add (local.get $pb) (f64x2.mul (local.get $gap) (local.get $gap))))
      (local.set $gap (f64x2.sub (local.get $q) (f64x2.promote_low_f32x4 (v128.load64_zero (local.get $c)))))
      (local.set $pc (f64x2.add (local.get $pc) (f64x2.mul (local.get $gap) (local.get $gap))))
      (local.set $gap (f64x2.sub (local.get $q) (f64x2.promote_low_f32x4 (v128.load64_zero (local.get $d)))))
      (local.set $pd (f64x2.add (local.get $pd) (f64x2.mul (local.get $gap) (local.get $gap))))
      (local.set $q (v128.load offset=16 (local.get $query)))
      (local.set $gap (f64x2.sub (local.get $q) (f64x2.promote_low_f32x4 (v128.load64_zero offset=8 (local.get $a)))))
      (local.set $ra (f64x2.add (local.get $ra) (f64x2.mul (local.get $gap) (local.get $gap))))
      (local.set $gap (f64x2.sub (local.get $q) (f64x2.promote_low_f32x4 (v128.load64_zero offset=8 (local.get $b)))))
      (local.set $rb (f64x2.add (local.get $rb) (f64x2.mul (local.get $gap) (local.get $gap))))
      (local.set $gap (f64x2.sub (local.get $q) (f64x2.promote_low_f32x4 (v128.load64_zero offset=8 (local.get $c)))))
      (local.set $rc (f64x2.add (local.get $rc) (f64x2.mul (local.get $gap) (local.get $gap))))
      (local.set $gap (f64x2.sub (local.get $q) (f64x2.promote_low_f32x4 (v128.load64_zero offset=8 (local.get $d)))))
      (local.set $rd (f64x2.add (local.get $rd) (f64x2.mul (local.get $gap) (local.get $gap))))
      (local.set $query (i32.add (local.get $query) (i32.const 32)))
      (local.set $a (i32.add (local.get $a) (i32.const 16)))
      (local.set $b (i32.add (local.get $b) (i32.const 16)))
      (local.set $c (i32.add (local.get $c) (i32.const 16)))
      (local.set $d (i32.add (local.get $d) (i32.const 16)))
      (br_if $lanes (i32.ne (local.get $a) (local.get $end))))
    (call $sum (local.get $pa) (local.get $ra))
    (call $sum (local.get $pb) (local.get $rb))
    (call $sum (local.get $pc) (local.get $rc))
    (call $sum (local.get $pd) (local.get $rd)))

  ;; Dot products of a query of i16 with rows a, b, c, d of i8. The caller limits the
  ;; query so that no sum overflows.
  (func $quantizedDot4
    (param $query i32) (param $a i32) (param $b i32) (param $c i32) (param $d i32)
    (param $strideBytes i32)
    (result f64 f64 f64 f64)
    (local $end i32) (local $low v128) (local $high v128)
    (local $sa v128) (local $sb v128) (local $sc v128) (local $sd v128)
    (local.set $end (i32.add (local.get $a) (local.get $strideBytes)))
    (loop $lanes
      (local.set $low (v128.load (local.get $query)))
      (local.set $high (v128.load offset=16 (local.get $query)))
      (local.set $sa (i32x4.add (local.get $sa) (i32x4.add
        (i32x4.dot_i16x8_s (v128.load8x8_s (local.get $a)) (local.get $low))
        (i32x4.dot_i16x8_s (v128.load8x8_s offset=8 (local.get $a)) (local.get $high)))))
      (local.set $sb (i32x4.add (local.get $sb) (i32x4.add
        (i32x4.dot_i16x8_s (v128.load8x8_s (local.get $b)) (local.get $low))
        (i32x4.dot_i16x8_s (v128.load8x8_s offset=8 (local.get $b)) (local.get $high)))))
      (local.set $sc (i32x4.add (local.get $sc) (i32x4.add
        (i32x4.dot_i16x8_s (v128.load8x8_s (local.get $c)) (local.get $low))
        (i32x4.dot_i16x8_s (v128.load8x8_s offset=8 (local.get $c)) (local.get $high)))))
      (local.set $sd (i32x4.add (local.get $sd) (i32x4.add
        (i32x4.dot_i16x8_s (v128.load8x8_s (local.get $d)) (local.get $low))
        (i32x4.dot_i16x8_s (v128.load8x8_s offset=8 (local.get $d)) (local.get $high)))))
      (local.set $query (i32.add (local.get $query) (i32.const 32)))
      (local.set $a (i32.add (local.get $a) (i32.const 16)))
      (local.set $b (i32.add (local.get $b) (i32.const 16)))
      (local.set $c (i32.add (local.get $c) (i32.const 16)))
      (local.set $d (i32.add (local.get $d) (i32.const 16)))
      (br_if $lanes (i32.ne (local.get $a) (local.get $end))))
    (call $sumIntegers (local.get $sa))
    (call $sumIntegers (local.get $sb))
    (call $sumIntegers (local.get $sc))
    (call $sumIntegers (local.get $sd)))

  (func $sumIntegers (param $s v128) (result f64)
    (f64.convert_i32_s (i32.add
      (i32.add (i32x4.extract_lane 0 (local.get $s)) (i32x4.extract_lane 1 (local.get $s)))
      (i32.add (i32x4.extract_lane 2 (local.get $s)) (i32x4.extract_lane 3 (local.get $s))))))

  (func $sum (param $p v128) (param $r v128) (result f64)
    (local.set $p (f64x2.add (local.get $p) (local.get $r)))
    (f64.add (f64x2.extract_lane 0 (local.get $p)) (f64x2.extract_lane 1 (local.get $p)))))
