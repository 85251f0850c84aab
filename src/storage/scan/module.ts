import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { once } from '../../base/once.ts'
import { packageRoot } from '../../base/package.ts'

/** The compiled scan kernels. Contains no data, so all segments can share one module. */
export interface ScanModule {
  readonly compiled: WebAssembly.Module
  /** True if the memory of the kernels can be sent to other threads, which then share it. */
  readonly isShared: boolean
}

/** Linear memory of one segment. */
export type ScanMemory = WebAssembly.Memory

/**
 * Writes one f64 for each of `count` rows to `out`. Arguments are byte offsets, except `count` and
 * `strideBytes`.
 *
 * @param slots  offset of the u32 numbers of the rows to read, or 0 to read the rows from `rows` on in order
 */
type Kernel = (
  query: number,
  rows: number,
  slots: number,
  count: number,
  strideBytes: number,
  out: number,
) => void

/** Exports of `scan.wat`. */
export interface ScanKernels {
  dot: Kernel
  squaredDistance: Kernel
  /** Dot products of a query of 16-bit integers with rows of 8-bit integers. */
  quantizedDot: Kernel
  /** Like `quantizedDot`, for rows in order. */
  quantizedDotInOrder(query: number, rows: number, count: number, strideBytes: number, out: number): void
  /**
   * Like `quantizedDotInOrder`, for two queries, one after another. The results of the second query are `outBytes` bytes
   * after those of the first.
   */
  quantizedDotPair(
    query: number,
    rows: number,
    count: number,
    strideBytes: number,
    out: number,
    outBytes: number,
  ): void
  squaredNorm(row: number, strideBytes: number): number
  /** Writes a row of f32 as 8-bit integers to `out`. Returns the scale, and the sum of the squared differences. */
  quantize(row: number, strideBytes: number, out: number): [scale: number, squaredError: number]
}

/** Size of a page of WebAssembly memory. */
export const PAGE_BYTES = 65_536

/** Maximum number of pages that 32-bit addresses can reach, 4 GiB in total. */
export const MAX_PAGES = 65_536

/**
 * Returns the scan kernels of this package; compiles them on first use.
 *
 * @throws Error  ENOENT if `dist/scan.wasm` was not built
 */
export const loadScanModule = once(() => load('scan.wasm', false))

/**
 * Returns the scan kernels for memory that threads share. Use it for few, large memories: the garbage collector does not
 * know their size.
 *
 * @throws Error  ENOENT if `dist/scan-shared.wasm` was not built
 */
export const loadSharedScanModule = once(() => load('scan-shared.wasm', true))

function load(file: string, isShared: boolean): ScanModule {
  return { compiled: new WebAssembly.Module(readFileSync(join(packageRoot(), 'dist', file))), isShared }
}

/** Creates a memory of `pages` pages for the kernels of a module. It can grow to `MAX_PAGES`. */
export function createScanMemory({ isShared }: ScanModule, pages: number): ScanMemory {
  return new WebAssembly.Memory({ initial: pages, maximum: MAX_PAGES, shared: isShared })
}

/** Creates an instance of the kernels that works on a memory. */
export function openKernels({ compiled }: ScanModule, memory: ScanMemory): ScanKernels {
  return new WebAssembly.Instance(compiled, { scan: { memory } }).exports as ScanKernels
}
