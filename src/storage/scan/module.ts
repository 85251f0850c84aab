import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { once } from '../../base/once.ts'
import { packageRoot } from '../../base/package.ts'

// The parts of the global that the scan uses. Their types are in lib.dom, which server code must not use.
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

/** The compiled scan kernels. Holds no data, and can be shared by any number of segments. */
export type ScanModule = WebAssembly.Module

/** Linear memory of one segment. */
export type ScanMemory = WebAssembly.Memory

/**
 * Writes one f64 for each of `count` rows to `out`. Arguments are byte offsets, except `count` and
 * `strideBytes`.
 *
 * @param slots  u32 row numbers to read, or 0 to read the rows that start at `rows`
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

export const PAGE_BYTES = 65_536

/** Maximum number of pages that 32-bit addresses can reach: 4 GiB. */
export const MAX_PAGES = 65_536

/**
 * Returns the scan kernels of this package; compiles them on first use.
 *
 * @throws Error  ENOENT if `dist/scan.wasm` was not built
 */
export const loadScanModule = once(
  (): ScanModule => new WebAssembly.Module(readFileSync(join(packageRoot(), 'dist', 'scan.wasm'))),
)

/** Creates an instance of the kernels with its own memory of `pages` pages, which can grow to `MAX_PAGES`. */
export function openScan(module: ScanModule, pages: number): { memory: ScanMemory; kernels: ScanKernels } {
  const memory = new WebAssembly.Memory({ initial: pages, maximum: MAX_PAGES })
  const instance = new WebAssembly.Instance(module, { scan: { memory } })
  return { memory, kernels: instance.exports as ScanKernels }
}
