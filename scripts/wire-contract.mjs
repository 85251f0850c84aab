import { rmSync } from 'node:fs'
import { basename, dirname, join, relative, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'

/** Folders of client code. It uses the types of the API contract, and the method, path and body kind of each route. */
const clientFolders = ['commands', join('src', 'client'), join('src', 'cli'), join('src', 'tui')]

/** Modules with zod schemas. Clients do not validate, and loading the schemas takes half as long as starting Node.js. */
const topics =
  /contract\/(operational|setup|auth|workspaces|connect|keys|releases|audit|audit-record|principals|policy|services|services\/\w+|models|knowledge|filters|documents|records|jobs|agents|chat|conversations|mcp|mcp-servers|playground|index)\.ts$/

function isRoute(value) {
  return typeof value?.method === 'string' && typeof value.path === 'string'
}

/** Returns a route without its schemas, data unchanged, and undefined for a schema. */
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
 * Creates an esbuild plugin that removes schemas from the contract modules that client code imports.
 *
 * A client that imports a schema as a value fails to build, because the export is missing.
 *
 * @param {string} root folder of the package
 */
export function wireContract(root) {
  const isClient = importer => clientFolders.some(folder => relative(root, importer).startsWith(folder + sep))
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
