;; The operations of the sentence encoder (sentence-encoder.ts): matrix products of integers, and
;; the functions between them on f32.
;;
;; All addresses are byte offsets in the imported memory. Rows of f32 have a width that is a
;; multiple of 8.
;;
;; A matrix product multiplies rows of i16 with panels. A panel has 16 columns of the right
;; matrix: for each pair of inputs k and k + 1, the values of the 16 columns at k and k + 1,
;; column by column. i32x4.dot_i16x8_s then multiplies one pair of a row, in all lanes, with the
;; pairs of four columns, and each lane is the sum of one column. Weights are stored in this order
;; as i8, and are widened to i16 one panel at a time, which stays in the cache for all rows.

(module
  (import "encoder" "memory" (memory 1 65536))

  ;; out = rows * weights + bias, for f32 out[rowCount][outBytes / 4]. Columns of the result follow
  ;; the panels. The input is i16 with a scale per row, the weights are i8 with a scale per column.
  ;; An odd rowCount is rounded up. `widened` has room for a panel of i16.
  (func (export "linear")
    (param $rows i32) (param $rowBytes i32) (param $rowCount i32) (param $rowScales i32)
    (param $weights i32) (param $pairs i32) (param $panels i32) (param $scales i32) (param $bias i32)
    (param $widened i32) (param $out i32) (param $outBytes i32)
    (local $to i32) (local $end i32)
    (loop $next
      (local.set $to (local.get $widened))
      (local.set $end (i32.add (local.get $widened) (i32.shl (local.get $pairs) (i32.const 6))))
      (loop $widen
        (v128.store (local.get $to) (v128.load8x8_s (local.get $weights)))
        (v128.store offset=16 (local.get $to) (v128.load8x8_s offset=8 (local.get $weights)))
        (local.set $weights (i32.add (local.get $weights) (i32.const 16)))
        (local.set $to (i32.add (local.get $to) (i32.const 32)))
        (br_if $widen (i32.ne (local.get $to) (local.get $end))))
      (call $multiplyPanel (local.get $rows) (local.get $rowBytes) (local.get $rowCount)
        (local.get $rowScales) (local.get $widened) (local.get $pairs)
        (local.get $scales) (local.get $bias) (local.get $out) (local.get $outBytes))
      (local.set $scales (i32.add (local.get $scales) (i32.const 64)))
      (local.set $bias (i32.add (local.get $bias) (i32.const 64)))
      (local.set $out (i32.add (local.get $out) (i32.const 64)))
      (br_if $next (local.tee $panels (i32.sub (local.get $panels) (i32.const 1))))))

  ;; Like linear, for panels of i16 and without bias. `zeros` has 64 bytes.
  (func (export "multiply")
    (param $rows i32) (param $rowBytes i32) (param $rowCount i32) (param $rowScales i32)
    (param $columns i32) (param $pairs i32) (param $panels i32) (param $scales i32) (param $zeros i32)
    (param $out i32) (param $outBytes i32)
    (loop $next
      (call $multiplyPanel (local.get $rows) (local.get $rowBytes) (local.get $rowCount)
        (local.get $rowScales) (local.get $columns) (local.get $pairs)
        (local.get $scales) (local.get $zeros) (local.get $out) (local.get $outBytes))
      (local.set $columns (i32.add (local.get $columns) (i32.shl (local.get $pairs) (i32.const 6))))
      (local.set $scales (i32.add (local.get $scales) (i32.const 64)))
      (local.set $out (i32.add (local.get $out) (i32.const 64)))
      (br_if $next (local.tee $panels (i32.sub (local.get $panels) (i32.const 1))))))

  ;; Multiplies two rows at a time with a panel. Sums s are those of the first row, sums t those of
  ;; the second. More sums, or two pairs of inputs per iteration, are slower: V8 loads all operands of
  ;; an iteration before it computes, and then has too few registers.
  (func $multiplyPanel
    (param $rows i32) (param $rowBytes i32) (param $rowCount i32) (param $rowScales i32)
    (param $panel i32) (param $pairs i32) (param $scales i32) (param $bias i32)
    (param $out i32) (param $outBytes i32)
    (local $a0 i32) (local $a1 i32) (local $b i32) (local $end i32) (local $pair v128)
    (local $b0 v128) (local $b1 v128) (local $b2 v128) (local $b3 v128)
    (local $s0 v128) (local $s1 v128) (local $s2 v128) (local $s3 v128)
    (local $t0 v128) (local $t1 v128) (local $t2 v128) (local $t3 v128)
    (local.set $end (i32.add (local.get $panel) (i32.shl (local.get $pairs) (i32.const 6))))
    (loop $twoRows
      (local.set $a0 (local.get $rows))
      (local.set $a1 (i32.add (local.get $a0) (local.get $rowBytes)))
      (local.set $rows (i32.add (local.get $a1) (local.get $rowBytes)))
      (local.set $b (local.get $panel))
      (local.set $s0 (v128.const i32x4 0 0 0 0))
      (local.set $s1 (v128.const i32x4 0 0 0 0))
      (local.set $s2 (v128.const i32x4 0 0 0 0))
      (local.set $s3 (v128.const i32x4 0 0 0 0))
      (local.set $t0 (v128.const i32x4 0 0 0 0))
      (local.set $t1 (v128.const i32x4 0 0 0 0))
      (local.set $t2 (v128.const i32x4 0 0 0 0))
      (local.set $t3 (v128.const i32x4 0 0 0 0))
      (loop $inputs
        (local.set $b0 (v128.load (local.get $b)))
        (local.set $b1 (v128.load offset=16 (local.get $b)))
        (local.set $b2 (v128.load offset=32 (local.get $b)))
        (local.set $b3 (v128.load offset=48 (local.get $b)))
        (local.set $pair (v128.load32_splat (local.get $a0)))
        (local.set $s0 (i32x4.add (local.get $s0) (i32x4.dot_i16x8_s (local.get $pair) (local.get $b0))))
        (local.set $s1 (i32x4.add (local.get $s1) (i32x4.dot_i16x8_s (local.get $pair) (local.get $b1))))
        (local.set $s2 (i32x4.add (local.get $s2) (i32x4.dot_i16x8_s (local.get $pair) (local.get $b2))))
        (local.set $s3 (i32x4.add (local.get $s3) (i32x4.dot_i16x8_s (local.get $pair) (local.get $b3))))
        (local.set $pair (v128.load32_splat (local.get $a1)))
        (local.set $t0 (i32x4.add (local.get $t0) (i32x4.dot_i16x8_s (local.get $pair) (local.get $b0))))
        (local.set $t1 (i32x4.add (local.get $t1) (i32x4.dot_i16x8_s (local.get $pair) (local.get $b1))))
        (local.set $t2 (i32x4.add (local.get $t2) (i32x4.dot_i16x8_s (local.get $pair) (local.get $b2))))
        (local.set $t3 (i32x4.add (local.get $t3) (i32x4.dot_i16x8_s (local.get $pair) (local.get $b3))))
        (local.set $a0 (i32.add (local.get $a0) (i32.const 4)))
        (local.set $a1 (i32.add (local.get $a1) (i32.const 4)))
        (br_if $inputs (i32.ne
          (local.tee $b (i32.add (local.get $b) (i32.const 64))) (local.get $end))))
      (local.set $pair (v128.load32_splat (local.get $rowScales)))
      (v128.store (local.get $out) (f32x4.add (v128.load (local.get $bias))
        (f32x4.mul (f32x4.convert_i32x4_s (local.get $s0))
          (f32x4.mul (local.get $pair) (v128.load (local.get $scales))))))
      (v128.store offset=16 (local.get $out) (f32x4.add (v128.load offset=16 (local.get $bias))
        (f32x4.mul (f32x4.convert_i32x4_s (local.get $s1))
          (f32x4.mul (local.get $pair) (v128.load offset=16 (local.get $scales))))))
      (v128.store offset=32 (local.get $out) (f32x4.add (v128.load offset=32 (local.get $bias))
        (f32x4.mul (f32x4.convert_i32x4_s (local.get $s2))
          (f32x4.mul (local.get $pair) (v128.load offset=32 (local.get $scales))))))
      (v128.store offset=48 (local.get $out) (f32x4.add (v128.load offset=48 (local.get $bias))
        (f32x4.mul (f32x4.convert_i32x4_s (local.get $s3))
          (f32x4.mul (local.get $pair) (v128.load offset=48 (local.get $scales))))))
      (local.set $out (i32.add (local.get $out) (local.get $outBytes)))
      (local.set $pair (v128.load32_splat offset=4 (local.get $rowScales)))
      (v128.store (local.get $out) (f32x4.add (v128.load (local.get $bias))
        (f32x4.mul (f32x4.convert_i32x4_s (local.get $t0))
          (f32x4.mul (local.get $pair) (v128.load (local.get $scales))))))
      (v128.store offset=16 (local.get $out) (f32x4.add (v128.load offset=16 (local.get $bias))
        (f32x4.mul (f32x4.convert_i32x4_s (local.get $t1))
          (f32x4.mul (local.get $pair) (v128.load offset=16 (local.get $scales))))))
      (v128.store offset=32 (local.get $out) (f32x4.add (v128.load offset=32 (local.get $bias))
        (f32x4.mul (f32x4.convert_i32x4_s (local.get $t2))
          (f32x4.mul (local.get $pair) (v128.load offset=32 (local.get $scales))))))
      (v128.store offset=48 (local.get $out) (f32x4.add (v128.load offset=48 (local.get $bias))
        (f32x4.mul (f32x4.convert_i32x4_s (local.get $t3))
          (f32x4.mul (local.get $pair) (v128.load offset=48 (local.get $scales))))))
      (local.set $out (i32.add (local.get $out) (local.get $outBytes)))
      (local.set $rowScales (i32.add (local.get $rowScales) (i32.const 8)))
      (br_if $twoRows (i32.gt_s
        (local.tee $rowCount (i32.sub (local.get $rowCount) (i32.const 2))) (i32.const 0)))))

  ;; Writes rows of f32 as integers of at most `limit`, with a scale per row. A row of zeros has
  ;; scale 0.
  (func (export "quantizeRows")
    (param $rows i32) (param $rowBytes i32) (param $rowCount i32) (param $width i32) (param $limit f32)
    (param $out i32) (param $outBytes i32) (param $scales i32)
    (local $max f32)
    (loop $next
      (local.set $max (call $maxMagnitude (local.get $rows) (local.get $width)))
      (f32.store (local.get $scales) (f32.div (local.get $max) (local.get $limit)))
      (call $quantize (local.get $rows) (local.get $width)
        (call $inverse (local.get $limit) (local.get $max)) (local.get $out))
      (local.set $rows (i32.add (local.get $rows) (local.get $rowBytes)))
      (local.set $out (i32.add (local.get $out) (local.get $outBytes)))
      (local.set $scales (i32.add (local.get $scales) (i32.const 4)))
      (br_if $next (local.tee $rowCount (i32.sub (local.get $rowCount) (i32.const 1))))))

  ;; Writes the keys of a head, rows of 32 f32, as panels in which each row is a column, with a scale
  ;; per row. `row` has room for 64 bytes.
  (func (export "packKeys")
    (param $rows i32) (param $rowBytes i32) (param $rowCount i32) (param $limit f32) (param $factor f32)
    (param $row i32) (param $panels i32) (param $scales i32)
    (local $i i32) (local $max f32) (local $from i32) (local $end i32) (local $to i32) (local $pairs v128)
    (loop $next
      (local.set $max (call $maxMagnitude (local.get $rows) (i32.const 32)))
      (f32.store (local.get $scales)
        (f32.mul (f32.div (local.get $max) (local.get $limit)) (local.get $factor)))
      (call $quantize (local.get $rows) (i32.const 32)
        (call $inverse (local.get $limit) (local.get $max)) (local.get $row))
      (local.set $to (i32.add (local.get $panels) (i32.add
        (i32.shl (i32.shr_u (local.get $i) (i32.const 4)) (i32.const 10))
        (i32.shl (i32.and (local.get $i) (i32.const 15)) (i32.const 2)))))
      (local.set $from (local.get $row))
      (local.set $end (i32.add (local.get $row) (i32.const 64)))
      (loop $fourPairs
        (local.set $pairs (v128.load (local.get $from)))
        (v128.store32_lane 0 (local.get $to) (local.get $pairs))
        (v128.store32_lane offset=64 1 (local.get $to) (local.get $pairs))
        (v128.store32_lane offset=128 2 (local.get $to) (local.get $pairs))
        (v128.store32_lane offset=192 3 (local.get $to) (local.get $pairs))
        (local.set $to (i32.add (local.get $to) (i32.const 256)))
        (local.set $from (i32.add (local.get $from) (i32.const 16)))
        (br_if $fourPairs (i32.ne (local.get $from) (local.get $end))))
      (local.set $rows (i32.add (local.get $rows) (local.get $rowBytes)))
      (local.set $scales (i32.add (local.get $scales) (i32.const 4)))
      (br_if $next (i32.ne
        (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $rowCount)))))

  ;; Writes the values of a head, rows of 32 f32, as panels in which two rows are a pair of inputs,
  ;; with a scale per column. Pairs past the rows are zero.
  (func (export "packValues")
    (param $rows i32) (param $rowBytes i32) (param $rowCount i32) (param $pairs i32)
    (param $panels i32) (param $scales i32)
    (local $column i32) (local $i i32) (local $from i32) (local $to i32) (local $max v128)
    (local $inverse v128) (local $first v128) (local $second v128)
    (loop $fourColumns
      (local.set $max (v128.const f32x4 0 0 0 0))
      (local.set $from (local.get $rows))
      (local.set $i (local.get $rowCount))
      (loop $next
        (local.set $max (f32x4.pmax (local.get $max) (f32x4.abs (v128.load (local.get $from)))))
        (local.set $from (i32.add (local.get $from) (local.get $rowBytes)))
        (br_if $next (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
      (v128.store (local.get $scales)
        (f32x4.mul (local.get $max) (v128.const f32x4 0x1.0002p-15 0x1.0002p-15 0x1.0002p-15 0x1.0002p-15)))
      ;; A column of zeros would divide by zero.
      (local.set $inverse (f32x4.div
        (v128.const f32x4 32767 32767 32767 32767)
        (f32x4.pmax (local.get $max) (v128.const f32x4 1e-20 1e-20 1e-20 1e-20))))
      (local.set $from (local.get $rows))
      (local.set $to (i32.add (local.get $panels) (i32.add
        (i32.mul (i32.shr_u (local.get $column) (i32.const 4)) (i32.shl (local.get $pairs) (i32.const 6)))
        (i32.shl (i32.and (local.get $column) (i32.const 12)) (i32.const 2)))))
      (local.set $i (i32.const 0))
      (loop $nextPair
        (local.set $first (v128.const i32x4 0 0 0 0))
        (local.set $second (v128.const i32x4 0 0 0 0))
        (if (i32.lt_u (local.get $i) (local.get $rowCount)) (then
          (local.set $first (f32x4.add (f32x4.mul (local.get $inverse) (v128.load (local.get $from)))
            (v128.const f32x4 0x1.8p23 0x1.8p23 0x1.8p23 0x1.8p23)))))
        (if (i32.lt_u (i32.add (local.get $i) (i32.const 1)) (local.get $rowCount)) (then
          (local.set $second (f32x4.add (f32x4.mul (local.get $inverse)
            (v128.load (i32.add (local.get $from) (local.get $rowBytes))))
            (v128.const f32x4 0x1.8p23 0x1.8p23 0x1.8p23 0x1.8p23)))))
        (v128.store (local.get $to) (v128.or
          (v128.and (local.get $first) (v128.const i32x4 0xffff 0xffff 0xffff 0xffff))
          (i32x4.shl (local.get $second) (i32.const 16))))
        (local.set $to (i32.add (local.get $to) (i32.const 64)))
        (local.set $from (i32.add (local.get $from) (i32.shl (local.get $rowBytes) (i32.const 1))))
        (local.set $i (i32.add (local.get $i) (i32.const 2)))
        (br_if $nextPair (i32.lt_u (local.get $i) (i32.shl (local.get $pairs) (i32.const 1)))))
      (local.set $rows (i32.add (local.get $rows) (i32.const 16)))
      (local.set $scales (i32.add (local.get $scales) (i32.const 16)))
      (br_if $fourColumns (i32.lt_u
        (local.tee $column (i32.add (local.get $column) (i32.const 4))) (i32.const 32)))))

  ;; Writes the softmax of rows of f32 as integers with a scale per row. Only `columns` of the
  ;; `width` columns count, the others become 0; `width` is a multiple of 8. Changes the input. The
  ;; integers of a row add up to at most 65,000, so their product with a column of i16 fits into 32 bits.
  (func (export "softmax")
    (param $rows i32) (param $rowCount i32) (param $columns i32) (param $width i32)
    (param $out i32) (param $scales i32)
    (local $at i32) (local $end i32) (local $max v128) (local $sums v128) (local $sum f32) (local $size f32)
    (local $x v128) (local $n v128) (local $power v128) (local $p v128)
    (loop $next
      (local.set $end (i32.add (local.get $rows) (i32.shl (local.get $width) (i32.const 2))))
      (local.set $at (i32.add (local.get $rows) (i32.shl (local.get $columns) (i32.const 2))))
      (block $filled
        (loop $fill
          (br_if $filled (i32.eq (local.get $at) (local.get $end)))
          (f32.store (local.get $at) (f32.const -1e30))
          (local.set $at (i32.add (local.get $at) (i32.const 4)))
          (br $fill)))
      (local.set $max (v128.const f32x4 -1e30 -1e30 -1e30 -1e30))
      (local.set $at (local.get $rows))
      (loop $compare
        (local.set $max (f32x4.pmax (local.get $max) (v128.load (local.get $at))))
        (br_if $compare (i32.ne
          (local.tee $at (i32.add (local.get $at) (i32.const 16))) (local.get $end))))
      (local.set $max (f32x4.splat (call $maxLane (local.get $max))))
      (local.set $sums (v128.const f32x4 0 0 0 0))
      (local.set $at (local.get $rows))
      (loop $exponentiate
        ;; e^x = 2^n * e^r for x = n * ln 2 + r, with the polynomial of expf in Cephes.
        (local.set $x (f32x4.pmax (f32x4.sub (v128.load (local.get $at)) (local.get $max)) (v128.const f32x4 -87 -87 -87 -87)))
        (local.set $power (f32x4.add (v128.const f32x4 0x1.8p23 0x1.8p23 0x1.8p23 0x1.8p23)
          (f32x4.mul (local.get $x) (v128.const f32x4 1.44269504088896341 1.44269504088896341 1.44269504088896341 1.44269504088896341))))
        (local.set $n (f32x4.sub (local.get $power) (v128.const f32x4 0x1.8p23 0x1.8p23 0x1.8p23 0x1.8p23)))
        (local.set $x (f32x4.sub (local.get $x)
          (f32x4.mul (local.get $n) (v128.const f32x4 0.693359375 0.693359375 0.693359375 0.693359375))))
        (local.set $x (f32x4.add (local.get $x)
          (f32x4.mul (local.get $n) (v128.const f32x4 2.12194440e-4 2.12194440e-4 2.12194440e-4 2.12194440e-4))))
        (local.set $p (v128.const f32x4 1.9875691500e-4 1.9875691500e-4 1.9875691500e-4 1.9875691500e-4))
        (local.set $p (f32x4.add (v128.const f32x4 1.3981999507e-3 1.3981999507e-3 1.3981999507e-3 1.3981999507e-3) (f32x4.mul (local.get $p) (local.get $x))))
        (local.set $p (f32x4.add (v128.const f32x4 8.3334519073e-3 8.3334519073e-3 8.3334519073e-3 8.3334519073e-3) (f32x4.mul (local.get $p) (local.get $x))))
        (local.set $p (f32x4.add (v128.const f32x4 4.1665795894e-2 4.1665795894e-2 4.1665795894e-2 4.1665795894e-2) (f32x4.mul (local.get $p) (local.get $x))))
        (local.set $p (f32x4.add (v128.const f32x4 1.6666665459e-1 1.6666665459e-1 1.6666665459e-1 1.6666665459e-1) (f32x4.mul (local.get $p) (local.get $x))))
        (local.set $p (f32x4.add (v128.const f32x4 5.0000001201e-1 5.0000001201e-1 5.0000001201e-1 5.0000001201e-1) (f32x4.mul (local.get $p) (local.get $x))))
        (local.set $p (f32x4.add (v128.const f32x4 1 1 1 1) (f32x4.add (local.get $x)
          (f32x4.mul (f32x4.mul (local.get $x) (local.get $x)) (local.get $p)))))
        ;; The lowest bits of $power are n, which is added to the exponent.
        (local.set $p (i32x4.add (local.get $p) (i32x4.shl (local.get $power) (i32.const 23))))
        (v128.store (local.get $at) (local.get $p))
        (local.set $sums (f32x4.add (local.get $sums) (local.get $p)))
        (br_if $exponentiate (i32.ne
          (local.tee $at (i32.add (local.get $at) (i32.const 16))) (local.get $end))))
      (local.set $sum (call $sum (local.get $sums)))
      (local.set $size (f32.min (f32.const 32767) (f32.div (f32.const 65000) (local.get $sum))))
      (f32.store (local.get $scales)
        (f32.div (f32.const 1) (f32.mul (local.get $size) (local.get $sum))))
      (call $quantize (local.get $rows) (local.get $width) (f32x4.splat (local.get $size)) (local.get $out))
      (local.set $rows (local.get $end))
      (local.set $out (i32.add (local.get $out) (i32.shl (local.get $width) (i32.const 1))))
      (local.set $scales (i32.add (local.get $scales) (i32.const 4)))
      (br_if $next (local.tee $rowCount (i32.sub (local.get $rowCount) (i32.const 1))))))

  ;; Replaces `count` f32 with GELU: x * (1 + erf(x / sqrt 2)) / 2. `count` is a multiple of 4. The error function
  ;; is the rational approximation of Eigen, generic_fast_erf_float, for magnitudes up to 4.
  (func (export "gelu") (param $at i32) (param $count i32)
    (local $end i32) (local $x v128) (local $z v128) (local $square v128) (local $p v128) (local $q v128)
    (local.set $end (i32.add (local.get $at) (i32.shl (local.get $count) (i32.const 2))))
    (loop $next
      (local.set $x (v128.load (local.get $at)))
      (local.set $z (f32x4.pmin (v128.const f32x4 4 4 4 4) (f32x4.pmax (v128.const f32x4 -4 -4 -4 -4)
        (f32x4.mul (local.get $x) (v128.const f32x4 0.70710678118654752 0.70710678118654752 0.70710678118654752 0.70710678118654752)))))
      (local.set $square (f32x4.mul (local.get $z) (local.get $z)))
      (local.set $p (v128.const f32x4 -2.72614225801306e-10 -2.72614225801306e-10 -2.72614225801306e-10 -2.72614225801306e-10))
      (local.set $p (f32x4.add (v128.const f32x4 2.77068142495902e-08 2.77068142495902e-08 2.77068142495902e-08 2.77068142495902e-08) (f32x4.mul (local.get $p) (local.get $square))))
      (local.set $p (f32x4.add (v128.const f32x4 -2.10102402082508e-06 -2.10102402082508e-06 -2.10102402082508e-06 -2.10102402082508e-06) (f32x4.mul (local.get $p) (local.get $square))))
      (local.set $p (f32x4.add (v128.const f32x4 -5.69250639462346e-05 -5.69250639462346e-05 -5.69250639462346e-05 -5.69250639462346e-05) (f32x4.mul (local.get $p) (local.get $square))))
      (local.set $p (f32x4.add (v128.const f32x4 -7.34990630326855e-04 -7.34990630326855e-04 -7.34990630326855e-04 -7.34990630326855e-04) (f32x4.mul (local.get $p) (local.get $square))))
      (local.set $p (f32x4.add (v128.const f32x4 -2.95459980854025e-03 -2.95459980854025e-03 -2.95459980854025e-03 -2.95459980854025e-03) (f32x4.mul (local.get $p) (local.get $square))))
      (local.set $p (f32x4.add (v128.const f32x4 -1.60960333262415e-02 -1.60960333262415e-02 -1.60960333262415e-02 -1.60960333262415e-02) (f32x4.mul (local.get $p) (local.get $square))))
      (local.set $q (v128.const f32x4 -1.45660718464996e-05 -1.45660718464996e-05 -1.45660718464996e-05 -1.45660718464996e-05))
      (local.set $q (f32x4.add (v128.const f32x4 -2.13374055278905e-04 -2.13374055278905e-04 -2.13374055278905e-04 -2.13374055278905e-04) (f32x4.mul (local.get $q) (local.get $square))))
      (local.set $q (f32x4.add (v128.const f32x4 -1.68282697438203e-03 -1.68282697438203e-03 -1.68282697438203e-03 -1.68282697438203e-03) (f32x4.mul (local.get $q) (local.get $square))))
      (local.set $q (f32x4.add (v128.const f32x4 -7.37332916720468e-03 -7.37332916720468e-03 -7.37332916720468e-03 -7.37332916720468e-03) (f32x4.mul (local.get $q) (local.get $square))))
      (local.set $q (f32x4.add (v128.const f32x4 -1.42647390514189e-02 -1.42647390514189e-02 -1.42647390514189e-02 -1.42647390514189e-02) (f32x4.mul (local.get $q) (local.get $square))))
      (local.set $x (f32x4.mul (local.get $x) (v128.const f32x4 0.5 0.5 0.5 0.5)))
      (v128.store (local.get $at) (f32x4.add (local.get $x) (f32x4.mul (local.get $x)
        (f32x4.div (f32x4.mul (local.get $z) (local.get $p)) (local.get $q)))))
      (br_if $next (i32.ne (local.tee $at (i32.add (local.get $at) (i32.const 16))) (local.get $end)))))

  ;; Adds rows of f32 to others, and normalizes each sum to mean 0 and variance 1, times `weight`, plus `bias`.
  (func (export "addAndNormalize")
    (param $rows i32) (param $addends i32) (param $rowCount i32) (param $width i32)
    (param $weight i32) (param $bias i32)
    (local $at i32) (local $end i32) (local $w i32) (local $b i32)
    (local $v v128) (local $sums v128) (local $mean v128) (local $factor v128)
    (loop $next
      (local.set $end (i32.add (local.get $rows) (i32.shl (local.get $width) (i32.const 2))))
      (local.set $sums (v128.const f32x4 0 0 0 0))
      (local.set $at (local.get $rows))
      (loop $add
        (local.set $v (f32x4.add (v128.load (local.get $at)) (v128.load (local.get $addends))))
        (v128.store (local.get $at) (local.get $v))
        (local.set $sums (f32x4.add (local.get $sums) (local.get $v)))
        (local.set $addends (i32.add (local.get $addends) (i32.const 16)))
        (br_if $add (i32.ne (local.tee $at (i32.add (local.get $at) (i32.const 16))) (local.get $end))))
      (local.set $mean (f32x4.splat (f32.div
        (call $sum (local.get $sums)) (f32.convert_i32_u (local.get $width)))))
      (local.set $sums (v128.const f32x4 0 0 0 0))
      (local.set $at (local.get $rows))
      (loop $square
        (local.set $v (f32x4.sub (v128.load (local.get $at)) (local.get $mean)))
        (local.set $sums (f32x4.add (local.get $sums) (f32x4.mul (local.get $v) (local.get $v))))
        (br_if $square (i32.ne (local.tee $at (i32.add (local.get $at) (i32.const 16))) (local.get $end))))
      (local.set $factor (f32x4.splat (f32.div (f32.const 1) (f32.sqrt (f32.add (f32.const 1e-12)
        (f32.div (call $sum (local.get $sums)) (f32.convert_i32_u (local.get $width))))))))
      (local.set $at (local.get $rows))
      (local.set $w (local.get $weight))
      (local.set $b (local.get $bias))
      (loop $scale
        (v128.store (local.get $at) (f32x4.add (v128.load (local.get $b)) (f32x4.mul
          (v128.load (local.get $w)) (f32x4.mul (local.get $factor)
            (f32x4.sub (v128.load (local.get $at)) (local.get $mean))))))
        (local.set $w (i32.add (local.get $w) (i32.const 16)))
        (local.set $b (i32.add (local.get $b) (i32.const 16)))
        (br_if $scale (i32.ne (local.tee $at (i32.add (local.get $at) (i32.const 16))) (local.get $end))))
      (local.set $rows (local.get $end))
      (br_if $next (local.tee $rowCount (i32.sub (local.get $rowCount) (i32.const 1))))))

  ;; Writes `width` f32, each times a factor and rounded, as i16. `width` is a multiple of 8. The
  ;; products are smaller than 2^22. Adding 1.5 * 2^23 therefore rounds them, and leaves the integer in the
  ;; lowest bits.
  (func $quantize (param $from i32) (param $width i32) (param $factor v128) (param $out i32)
    (local $end i32)
    (local.set $end (i32.add (local.get $from) (i32.shl (local.get $width) (i32.const 2))))
    (loop $next
      (v128.store (local.get $out) (i16x8.narrow_i32x4_s
        (i32x4.sub
          (f32x4.add (f32x4.mul (local.get $factor) (v128.load (local.get $from)))
            (v128.const f32x4 0x1.8p23 0x1.8p23 0x1.8p23 0x1.8p23))
          (v128.const i32x4 0x4b400000 0x4b400000 0x4b400000 0x4b400000))
        (i32x4.sub
          (f32x4.add (f32x4.mul (local.get $factor) (v128.load offset=16 (local.get $from)))
            (v128.const f32x4 0x1.8p23 0x1.8p23 0x1.8p23 0x1.8p23))
          (v128.const i32x4 0x4b400000 0x4b400000 0x4b400000 0x4b400000))))
      (local.set $out (i32.add (local.get $out) (i32.const 16)))
      (br_if $next (i32.ne
        (local.tee $from (i32.add (local.get $from) (i32.const 32))) (local.get $end)))))

  ;; Returns limit / max in all lanes; 0 for max 0.
  (func $inverse (param $limit f32) (param $max f32) (result v128)
    (f32x4.splat (select (f32.div (local.get $limit) (local.get $max)) (f32.const 0)
      (f32.gt (local.get $max) (f32.const 1e-20)))))

  (func $maxMagnitude (param $at i32) (param $width i32) (result f32)
    (local $end i32) (local $max v128)
    (local.set $end (i32.add (local.get $at) (i32.shl (local.get $width) (i32.const 2))))
    (loop $next
      (local.set $max (f32x4.pmax (local.get $max) (f32x4.abs (v128.load (local.get $at)))))
      (br_if $next (i32.ne (local.tee $at (i32.add (local.get $at) (i32.const 16))) (local.get $end))))
    (call $maxLane (local.get $max)))

  (func $maxLane (param $v v128) (result f32)
    (f32.max
      (f32.max (f32x4.extract_lane 0 (local.get $v)) (f32x4.extract_lane 1 (local.get $v)))
      (f32.max (f32x4.extract_lane 2 (local.get $v)) (f32x4.extract_lane 3 (local.get $v)))))

  (func $sum (param $v v128) (result f32)
    (f32.add
      (f32.add (f32x4.extract_lane 0 (local.get $v)) (f32x4.extract_lane 1 (local.get $v)))
      (f32.add (f32x4.extract_lane 2 (local.get $v)) (f32x4.extract_lane 3 (local.get $v))))))
