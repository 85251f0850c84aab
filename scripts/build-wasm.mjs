import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import wabt from 'wabt'

/**
 * Compile the vector scan kernels to `<outDir>/scan.wasm`.
 *
 * @param {string} outDir  made when missing
 * @returns {Promise<string>} path of the file written
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
  // A rename, so that a process reading the old file never sees half of the new one.
  const draft = `${target}.${process.pid}`
  writeFileSync(draft, buffer)
  renameSync(draft, target)
  return target
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  await buildWasm(fileURLToPath(new URL('../dist', import.meta.url)))
