import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * Runs the tests that need onnxruntime-node, which is not a dependency of this package.
 *
 * npm run check:native -- FOLDER     FOLDER: where onnxruntime-node is installed; by default this package
 */
const [folder = fileURLToPath(new URL('..', import.meta.url))] = process.argv.slice(2)
const runtime = resolve(folder, 'node_modules', 'onnxruntime-node')

if (existsSync(runtime)) {
  const vitest = fileURLToPath(new URL('../node_modules/vitest/vitest.mjs', import.meta.url))
  const { status } = spawnSync(process.execPath, [vitest, 'run', '--project', 'native'], {
    stdio: 'inherit',
    env: { ...process.env, WB_NATIVE_RUNTIME: runtime },
  })
  process.exitCode = status ?? 1
} else {
  console.error(`${runtime} does not exist. Install it outside of this folder:
  npm install --prefix ../onnxruntime onnxruntime-node
  npm run check:native -- ../onnxruntime`)
  process.exitCode = 1
}
