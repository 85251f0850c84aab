import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

const sources = ['src', 'commands', 'package.json']

function newest(path: string): number {
  const { mtimeMs } = statSync(path)
  if (!statSync(path).isDirectory()) return mtimeMs
  const inside = readdirSync(path, { recursive: true, withFileTypes: true })
  return Math.max(
    ...inside
      .filter(entry => entry.isFile())
      .map(entry => statSync(join(entry.parentPath, entry.name)).mtimeMs),
  )
}

/** Workers, WebAssembly and the command line are tested as they are built: refuse to test an old build. */
export default function requireBuild(): void {
  const built = statSync('dist/build.json', { throwIfNoEntry: false })?.mtimeMs
  if (built === undefined)
    throw new Error('dist is missing: run `npm run build`, or `npm test`, which builds first')
  if (sources.some(path => newest(path) > built))
    console.warn('dist is older than the sources: run `npm run build`')
}
