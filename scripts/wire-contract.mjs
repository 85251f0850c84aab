import { rmSync } from 'node:fs'
import { basename, dirname, join, relative, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'

/** Rooms that only speak the wire; they take types from the contract's topics, and of each route where to send what. */
const clientRooms = ['commands', join('src', 'client'), join('src', 'cli'), join('src', 'tui')]

/** Loading zod and a topic's schemas costs half of what `node -e 0` does, and a client validates nothing. */
const topics =
  /contract\/(operational|setup|auth|workspaces|connect|keys|releases|audit|audit-record|principals|policy|services|services\/\w+|models|knowledge|filters|documents|records|jobs|agents|chat|conversations|mcp|mcp-servers|playground|index)\.ts$/

function isRoute(value) {
  return typeof value?.method === 'string' && typeof value.path === 'string'
}

/** A route without its schemas; data stays as it is; a schema has no wire form and is left out. */
function wireForm(value) {
  if (isRoute(value)) {
    const { method, path, body } = value
    return body ? { method, path, body: { kind: body.kind } } : { method, path }
  }
  if (value === null || ['string', 'number', 'boolean'].includes(typeof value)) return value
  if (typeof value !== 'object' || '_zod' in value) return undefined
  return Array.isArray(value)
    ? value
    : Object.fromEntries(Object.entries(value).map(([k, v]) => [k, wireForm(v)]))
}

async function evaluate(root, path) {
  const outfile = join(
    root,
    'node_modules',
    '.cache',
    'workbase',
    `${basename(path, '.ts')}-${process.pid}.mjs`,
  )
  await build({
    entryPoints: [path],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
  })
  try {
    return await import(pathToFileURL(outfile).href)
  } finally {
    rmSync(outfile, { force: true })
  }
}

/**
 * An esbuild plugin that gives client rooms the contract's topics without their schemas.
 *
 * A client that imports a schema by value does not build, as the export is missing.
 *
 * @param {string} root  folder of the package
 */
export function wireContract(root) {
  const isClient = importer => clientRooms.some(room => relative(root, importer).startsWith(room + sep))
  return {
    name: 'wire-contract',
    setup(context) {
      context.onResolve({ filter: topics }, ({ path, importer }) =>
        isClient(importer) ? { path: join(dirname(importer), path), namespace: 'wire' } : undefined,
      )
      context.onLoad({ filter: /.*/, namespace: 'wire' }, async ({ path }) => {
        const exported = Object.entries(await evaluate(root, path)).map(([name, value]) => [
          name,
          wireForm(value),
        ])
        const lines = exported.filter(([, form]) => form !== undefined)
        const contents = lines
          .map(([name, form]) => `export const ${name} = ${JSON.stringify(form)}`)
          .join('\n')
        return { contents, loader: 'js', resolveDir: root }
      })
    },
  }
}
