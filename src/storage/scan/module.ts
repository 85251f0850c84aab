import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from '../../base/package.ts'

// The part of the global that the scan uses: it is typed in lib.dom only, which server code must not see.
declare namespace WebAssembly {
  class Module {
    constructor(bytes: Uint8Array)
  }
  class Memory {
    constructor(size: { initial: number; maximum: number })
    readonly buffer: ArrayBuffer
    grow(pages: number): number
  }
  class Instance {
    constructor(module: Module, imports: Record<string, Record<string, Memory>>)
    readonly exports: unknown
  }
}

/** The compiled scan kernels; holds no data and may be shared by any number of segments. */
export type ScanModule = WebAssembly.Module

/** Linear memory of one segment. */
export type ScanMemory = WebAssembly.Memory

/**
 * One f64 at `out` for each of `count` rows. Arguments but `count` and `strideBytes` are byte offsets.
 *
 * @param slots  u32 row numbers to read, or 0 for the rows from `rows` on
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
  squaredNorm(row: number, strideBytes: number): number
}

/** Bytes of one page of linear memory. */
export const PAGE_BYTES = 65_536

/** Most pages that 32-bit addresses reach: 4 GiB. */
export const MAX_PAGES = 65_536

const loaded: { module?: ScanModule } = {}

/**
 * The scan kernels of this package, compiled on first use.
 *
 * @throws Error ENOENT when `dist/scan.wasm` was not built
 */
export function loadScanModule(): ScanModule {
  loaded.module ??= new WebAssembly.Module(readFileSync(join(packageRoot(), 'dist', 'scan.wasm')))
  return loaded.module
}

/** Give the kernels a memory of their own, `pages` pages at first and able to grow to `MAX_PAGES`. */
export function openScan(module: ScanModule, pages: number): { memory: ScanMemory; kernels: ScanKernels } {
  const memory = new WebAssembly.Memory({ initial: pages, maximum: MAX_PAGES })
  const instance = new WebAssembly.Instance(module, { scan: { memory } })
  return { memory, kernels: instance.exports as ScanKernels }
}
