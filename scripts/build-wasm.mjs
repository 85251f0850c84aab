import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import wabt from 'wabt'

/**
 * Compiles the vector scan kernels to `<outDir>/scan.wasm`.
 *
 * @param {string} outDir created if it is missing
 * @returns {Promise<string>} path of the file
 */
export async function buildWasm(outDir) {
  const source = fileURLToPath(new URL('../src/storage/scan/scan.wat', import.meta.url))
  const { parseWat } = await wabt()
  const parsed = parseWat('scan.wat', readFileSync(source, 'utf8'), { simd: true })
  parsed.validate()
  const { buffer } = parsed.toBinary({})
  parsed.destroy()

  mkdirSync(outDir, { recursive: true })
  const target = join(outDir, 'scan.wasm')
  // Renamed, so that a process never reads a partial file.
  const draft = `${target}.${process.pid}`
  writeFileSync(draft, buffer)
  renameSync(draft, target)
  return target
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  await buildWasm(fileURLToPath(new URL('../dist', import.meta.url)))
