import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from '../base/package.ts'

/** Linear memory of an encoder. */
export type EncoderMemory = WebAssembly.Memory

/** Exports of `kernels.wat`, which describes them. Addresses are byte offsets in the memory. */
export interface EncoderKernels {
  linear(
    rows: number,
    rowBytes: number,
    rowCount: number,
    rowScales: number,
    weights: number,
    pairs: number,
    panels: number,
    scales: number,
    bias: number,
    widened: number,
    out: number,
    outBytes: number,
  ): void
  multiply(
    rows: number,
    rowBytes: number,
    rowCount: number,
    rowScales: number,
    columns: number,
    pairs: number,
    panels: number,
    scales: number,
    zeros: number,
    out: number,
    outBytes: number,
  ): void
  quantizeRows(
    rows: number,
    rowBytes: number,
    rowCount: number,
    width: number,
    limit: number,
    out: number,
    outBytes: number,
    scales: number,
  ): void
  packKeys(
    rows: number,
    rowBytes: number,
    rowCount: number,
    limit: number,
    factor: number,
    row: number,
    panels: number,
    scales: number,
  ): void
  packValues(
    rows: number,
    rowBytes: number,
    rowCount: number,
    pairs: number,
    panels: number,
    scales: number,
  ): void
  softmax(rows: number, rowCount: number, columns: number, width: number, out: number, scales: number): void
  gelu(values: number, count: number): void
  addAndNormalize(
    rows: number,
    addends: number,
    rowCount: number,
    width: number,
    weight: number,
    bias: number,
  ): void
}

const PAGE_BYTES = 65_536

/** Creates a memory of at least so many bytes. It does not grow. */
export function createEncoderMemory(bytes: number): EncoderMemory {
  const pages = Math.ceil(bytes / PAGE_BYTES)
  return new WebAssembly.Memory({ initial: pages, maximum: pages, shared: false })
}

/**
 * Compiles the kernels of this package for a memory.
 *
 * @throws Error  ENOENT if `dist/sentence-encoder.wasm` was not built
 */
export function openEncoderKernels(memory: EncoderMemory): EncoderKernels {
  const module = new WebAssembly.Module(readFileSync(join(packageRoot(), 'dist', 'sentence-encoder.wasm')))
  return new WebAssembly.Instance(module, { encoder: { memory } }).exports as EncoderKernels
}
