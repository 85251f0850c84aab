import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import wabt from 'wabt'

/**
 * Compiles the vector scan kernels to `<outDir>/scan.wasm`, and to `<outDir>/scan-shared.wasm` for memory that threads share.
 *
 * @param {string} outDir created if it is missing
 */
export async function buildWasm(outDir) {
  const source = readFileSync(new URL('../src/storage/scan/scan.wat', import.meta.url), 'utf8')
  const { parseWat } = await wabt()
  const features = { simd: true, threads: true }
  mkdirSync(outDir, { recursive: true })
  for (const [name, memory] of [
    ['scan', '(memory 1 65536)'],
    ['scan-shared', '(memory 1 65536 shared)'],
  ]) {
    const parsed = parseWat(`${name}.wat`, source.replace('(memory 1 65536)', memory), features)
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
