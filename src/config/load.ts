import { dirname, resolve } from 'node:path'
import type { z } from 'zod'
import { WbError } from '../contract/errors.ts'
import { cautions, crossCheck, type Problem } from './checks.ts'
import type { Environment } from './environment.ts'
import type { Found } from './find.ts'
import { interpolate } from './interpolate.ts'
import { formatKey, has, leaves } from './key-path.ts'
import { knownKeys, nearestKey } from './known-keys.ts'
import { readYaml } from './read-yaml.ts'
import { type Config, configSchema, keysWithoutEffect, logLevels } from './schema.ts'

/** Source of a value. */
export interface Source {
  readonly from: 'default' | 'file' | 'environment' | 'flag'
  /** Name of the variable or flag. */
  readonly name?: string
  /** Text in the file if it has a placeholder; shown instead of the expanded value. */
  readonly written?: string
}

export interface Loaded {
  readonly config: Config
  /** Sources by key, for every scalar, empty list and empty map of `config`. */
  readonly sources: ReadonlyMap<string, Source>
  readonly warnings: readonly string[]
}

/** Command-line flags that override the file. Port 0 selects a free port. */
export interface Flags {
  host?: string | undefined
  port?: number | undefined
}

/**
 * Reads and validates the configuration.
 *
 * @throws validation_error  when the configuration is invalid; `facts.problems` lists every invalid key, the
 *   message names the first
 */
export function loadConfig(found: Pick<Found, 'path'>, environment: Environment, flags: Flags = {}): Loaded {
  const file = found.path === null ? { version: 1 } : (readYaml(found.path) ?? {})
  const { tree, written, missing } = interpolate(file, environment)
  refuse(
    found.path,
    missing.map(({ key, name }) => ({
      key,
      message: `the variable ${name} is not set, and no default is given`,
    })),
  )
  const parsed = configSchema.safeParse(tree, { reportInput: true })
  if (!parsed.success) throw refusal(found.path, parsed.error.issues.flatMap(problemsOf))
  const config = parsed.data
  refuse(found.path, crossCheck(config))

  const sources = sourcesOf(config, found.path === null ? {} : tree, written)
  if (found.path !== null) anchorPaths(config, dirname(found.path))
  const warnings = ignoredKeys(tree)
  applyEnvironment(config, sources, warnings, environment)
  applyFlags(config, sources, flags)
  warnings.push(...cautions(config))
  return { config, sources, warnings }
}

/** @param given  tree of the file; absent keys have their default */
function sourcesOf(
  config: Config,
  given: unknown,
  written: ReadonlyMap<string, string>,
): Map<string, Source> {
  const sources = new Map<string, Source>()
  for (const { path } of leaves(config)) {
    const key = formatKey(path)
    const text = written.get(key)
    if (!has(given, path)) sources.set(key, { from: 'default' })
    else sources.set(key, text === undefined ? { from: 'file' } : { from: 'file', written: text })
  }
  return sources
}

function refuse(path: string | null, problems: Problem[]): void {
  if (problems.length > 0) throw refusal(path, problems)
}

function refusal(path: string | null, problems: Problem[]): WbError {
  const [{ key, message }] = problems as [Problem, ...Problem[]]
  const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : ''
  const place = [path, key].filter(Boolean).join(': ')
  return new WbError('validation_error', `${place}: ${message}${more}`, {
    hint: 'Correct the configuration; `wb config validate` lists all that is wrong with it.',
    problems,
  })
}

function problemsOf(issue: z.core.$ZodIssue): Problem[] {
  if (issue.code !== 'unrecognized_keys') return [{ key: formatKey(issue.path), message: messageOf(issue) }]
  const known = knownKeys(configSchema)
  return issue.keys.map(name => {
    const key = formatKey([...issue.path, name])
    const nearest = nearestKey(key, known)
    return { key, message: `is not a known key${nearest ? `; the nearest is ${nearest}` : ''}` }
  })
}

function messageOf(issue: z.core.$ZodIssue): string {
  if (/^invalid_(?:type|union)$/.test(issue.code) && issue.input === undefined) return 'is required'
  return issue.message.replace(/^Invalid (?:input|option): /, '')
}

/** Resolves relative paths against the folder of the file, not the working directory. */
function anchorPaths({ controlPlane }: Config, folder: string): void {
  if (controlPlane.driver === 'file') controlPlane.root = resolve(folder, controlPlane.root)
  if (controlPlane.driver === 'sqlite' && controlPlane.path !== null && controlPlane.path !== ':memory:')
    controlPlane.path = resolve(folder, controlPlane.path)
}

function ignoredKeys(tree: unknown): string[] {
  const given = keysWithoutEffect.filter(key => has(tree, key.split('.')))
  return given.length > 0 ? [`without effect in this runtime: ${given.join(', ')}`] : []
}

function applyEnvironment(
  config: Config,
  sources: Map<string, Source>,
  warnings: string[],
  { log }: Environment,
): void {
  if (!log) return
  const level = logLevels.find(known => known === log.level)
  if (!level) {
    warnings.push(`${log.name} is none of ${logLevels.join(', ')} and is ignored`)
    return
  }
  config.runtime.logLevel = level
  sources.set('runtime.logLevel', { from: 'environment', name: log.name })
}

function applyFlags(config: Config, sources: Map<string, Source>, { host, port }: Flags): void {
  if (host !== undefined) {
    config.runtime.host = host
    sources.set('runtime.host', { from: 'flag', name: '--host' })
  }
  if (port !== undefined) {
    config.runtime.port = port
    sources.set('runtime.port', { from: 'flag', name: '--port' })
  }
}
