import { dirname, resolve } from 'node:path'
import type { z } from 'zod'
import { readYaml } from '../base/read-yaml.ts'
import { WbError } from '../contract/errors.ts'
import { type ConfigKeyProblem, checkAcrossKeys, configWarnings } from './config-checks.ts'
import type { ConfigEnvironment } from './config-environment.ts'
import type { ConfigFile } from './find-config.ts'
import { interpolate } from './interpolate.ts'
import { formatKey, hasPath, leavesOf } from './key-path.ts'
import { knownKeys, nearestKey } from './known-keys.ts'
import { type Config, configSchema, keysWithoutEffect, logLevels } from './schema.ts'

/** Source of a configuration value. */
export interface ValueSource {
  readonly from: 'default' | 'file' | 'environment' | 'flag'
  /** Name of the variable or flag. */
  readonly name?: string
  /** Text in the file, if it has a placeholder. It is shown instead of the expanded value. */
  readonly sourceText?: string
}

export interface LoadedConfig {
  readonly config: Config
  /** Sources by key, for each scalar, empty list and empty map in `config`. */
  readonly sources: ReadonlyMap<string, ValueSource>
  readonly warnings: readonly string[]
}

/** Command-line flags that override the file. Port 0 selects a free port. */
export interface ConfigFlags {
  host?: string | undefined
  port?: number | undefined
}

/**
 * Reads and validates the configuration.
 *
 * @throws validation_error  when the configuration is invalid; `facts.problems` lists every invalid key, and
 *   the message names the first one
 */
export function loadConfig(
  file: Pick<ConfigFile, 'path'>,
  environment: ConfigEnvironment,
  flags: ConfigFlags = {},
): LoadedConfig {
  const content = file.path === null ? { version: 1 } : (readYaml(file.path) ?? {})
  const { tree, sourceTexts, missing } = interpolate(content, environment)
  throwIfInvalid(
    file.path,
    missing.map(({ key, name }) => ({
      key,
      message: `the variable ${name} is not set, and the placeholder has no default`,
    })),
  )
  const parsed = configSchema.safeParse(tree, { reportInput: true })
  if (!parsed.success) throw configError(file.path, parsed.error.issues.flatMap(problemsOfIssue))
  const config = parsed.data
  throwIfInvalid(file.path, checkAcrossKeys(config))

  const sources = sourcesOf(config, file.path === null ? {} : tree, sourceTexts)
  if (file.path !== null) resolvePaths(config, dirname(file.path))
  const warnings = keysWithoutEffectWarnings(tree)
  applyEnvironment(config, sources, warnings, environment)
  applyFlags(config, sources, flags)
  warnings.push(...configWarnings(config))
  return { config, sources, warnings }
}

/**
 * Returns the source of each value, by key.
 *
 * @param fileTree     content of the file; keys that it does not contain have their defaults
 * @param sourceTexts  see {@link interpolate}
 */
function sourcesOf(
  config: Config,
  fileTree: unknown,
  sourceTexts: ReadonlyMap<string, string>,
): Map<string, ValueSource> {
  const sources = new Map<string, ValueSource>()
  for (const { path } of leavesOf(config)) {
    const key = formatKey(path)
    const text = sourceTexts.get(key)
    if (!hasPath(fileTree, path)) sources.set(key, { from: 'default' })
    else sources.set(key, text === undefined ? { from: 'file' } : { from: 'file', sourceText: text })
  }
  return sources
}

function throwIfInvalid(path: string | null, problems: ConfigKeyProblem[]): void {
  if (problems.length > 0) throw configError(path, problems)
}

function configError(path: string | null, problems: ConfigKeyProblem[]): WbError {
  const [{ key, message }] = problems as [ConfigKeyProblem, ...ConfigKeyProblem[]]
  const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : ''
  const location = [path, key].filter(Boolean).join(': ')
  return new WbError('validation_error', `${location}: ${message}${more}`, {
    hint: 'Correct the configuration; `wb config validate` lists all errors.',
    problems,
  })
}

function problemsOfIssue(issue: z.core.$ZodIssue): ConfigKeyProblem[] {
  if (issue.code !== 'unrecognized_keys')
    return [{ key: formatKey(issue.path), message: issueMessage(issue) }]
  const known = knownKeys(configSchema)
  return issue.keys.map(name => {
    const key = formatKey([...issue.path, name])
    const nearest = nearestKey(key, known)
    return { key, message: `is not a known key${nearest ? `; the nearest is ${nearest}` : ''}` }
  })
}

function issueMessage(issue: z.core.$ZodIssue): string {
  if (/^invalid_(?:type|union)$/.test(issue.code) && issue.input === undefined) return 'is required'
  return issue.message.replace(/^Invalid (?:input|option): /, '')
}

/** Makes relative paths absolute. They are relative to the folder of the file, not to the working directory. */
function resolvePaths({ controlPlane }: Config, folder: string): void {
  if (controlPlane.driver === 'file') controlPlane.root = resolve(folder, controlPlane.root)
  if (controlPlane.driver === 'sqlite' && controlPlane.path !== null && controlPlane.path !== ':memory:')
    controlPlane.path = resolve(folder, controlPlane.path)
}

function keysWithoutEffectWarnings(tree: unknown): string[] {
  const keys = keysWithoutEffect.filter(key => hasPath(tree, key.split('.')))
  return keys.length > 0 ? [`without effect in this runtime: ${keys.join(', ')}`] : []
}

function applyEnvironment(
  config: Config,
  sources: Map<string, ValueSource>,
  warnings: string[],
  { log, semanticSearch }: ConfigEnvironment,
): void {
  if (log) applyLogLevel(config, sources, warnings, log)
  if (semanticSearch === undefined) return
  if (semanticSearch !== 'on' && semanticSearch !== 'off') {
    warnings.push('WB_SEMANTIC_SEARCH is ignored, because it is not one of on, off')
    return
  }
  config.runtime.semanticSearch = semanticSearch === 'on'
  sources.set('runtime.semanticSearch', { from: 'environment', name: 'WB_SEMANTIC_SEARCH' })
}

function applyLogLevel(
  config: Config,
  sources: Map<string, ValueSource>,
  warnings: string[],
  log: NonNullable<ConfigEnvironment['log']>,
): void {
  const level = logLevels.find(name => name === log.level)
  if (!level) {
    warnings.push(`${log.name} is ignored, because it is not one of ${logLevels.join(', ')}`)
    return
  }
  config.runtime.logLevel = level
  sources.set('runtime.logLevel', { from: 'environment', name: log.name })
}

function applyFlags(config: Config, sources: Map<string, ValueSource>, { host, port }: ConfigFlags): void {
  if (host !== undefined) {
    config.runtime.host = host
    sources.set('runtime.host', { from: 'flag', name: '--host' })
  }
  if (port !== undefined) {
    config.runtime.port = port
    sources.set('runtime.port', { from: 'flag', name: '--port' })
  }
}
