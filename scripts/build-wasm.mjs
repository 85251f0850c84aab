import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import wabt from 'wabt'

const memory = '(memory 1 65536)'

/** Kernels: name of the output, source, and memory that the source imports. */
const kernels = [
  ['scan', 'storage/scan/scan.wat', memory],
  ['scan-shared', 'storage/scan/scan.wat', '(memory 1 65536 shared)'],
  ['sentence-encoder', 'sentence-model/kernels.wat', memory],
]

/**
 * Compiles the kernels to `<outDir>/<name>.wasm`. Those of the vector scan are compiled twice: `scan-shared.wasm` is for
 * memory that threads share.
 *
 * @param {string} outDir created if it is missing
 */
export async function buildWasm(outDir) {
  const { parseWat } = await wabt()
  const features = { simd: true, threads: true }
  mkdirSync(outDir, { recursive: true })
  for (const [name, path, imported] of kernels) {
    const source = readFileSync(new URL(`../src/${path}`, import.meta.url), 'utf8')
    const parsed = parseWat(`${name}.wat`, source.replace(memory, imported), features)
    parsed.validate(features)
    const { buffer } = parsed.toBinary({})
    parsed.destroy()
    // Renamed, so that a process never reads a partial file.
    const target = join(outDir, `${name}.wasm`)
    const draft = `${target}.${process.pid}`
    writeFileSync(draft, buffer)
    renameSync(draft, target)
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  await buildWasm(fileURLToPath(new URL('../dist', import.meta.url)))
