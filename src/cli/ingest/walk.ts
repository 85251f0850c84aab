import type { Dirent, Stats } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { basename, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { glob, isDynamicPattern } from 'tinyglobby'
import { resolveTypedPath } from '../resolve-typed-path.ts'
import { IgnoreRules } from './ignore-rules.ts'
import { type FileToRead, type IngestItem, specialFileItem } from './ingest-item.ts'
import { systemRefusal } from './read-text.ts'

export type WalkedItem = FileToRead | IngestItem

export interface WalkOptions {
  /** Folder that relative paths start from. */
  readonly cwd: string
  /** True to include hidden files and those ignored by `.gitignore`; never the folder `.git`. */
  readonly all: boolean
}

/**
 * Yields the files of files, folders and globs in the order of the arguments, sorted by name within each
 * folder. Follows only symbolic links that the user named, so a walk always ends and stays inside its folder.
 */
export async function* walk(args: readonly string[], options: WalkOptions): AsyncGenerator<WalkedItem> {
  const names = args.length > 1 ? new Map<string, string>() : undefined
  for (const arg of args)
    for await (const item of walkArgument(arg, options)) {
      const distinctItem = 'kind' in item ? item : withDistinctName(item, names, options.cwd)
      if (distinctItem) yield distinctItem
    }
}

/**
 * Renames a file whose name is taken by a file of another argument, as one would replace the other. The new
 * name is relative to the working directory. Returns undefined for a file that was already found.
 */
function withDistinctName(
  met: FileToRead,
  names: Map<string, string> | undefined,
  cwd: string,
): FileToRead | undefined {
  const file = resolve(met.file)
  const taken = names?.get(met.name)
  if (taken === file) return undefined
  const name = taken === undefined ? met.name : withForwardSlashes(relative(cwd, file))
  names?.set(name, file)
  return { ...met, name }
}

async function* walkArgument(arg: string, options: WalkOptions): AsyncGenerator<WalkedItem> {
  const found = await stat(resolveTypedPath(options.cwd, arg)).catch((error: unknown) => error as Error)
  if (!(found instanceof Error)) yield* walkExisting(arg, found, options)
  else if ('code' in found && found.code === 'ENOENT' && isDynamicPattern(arg)) yield* walkGlob(arg, options)
  else yield { kind: 'failed', problem: { path: arg, ...systemProblem(found) } }
}

async function* walkExisting(arg: string, found: Stats, options: WalkOptions): AsyncGenerator<WalkedItem> {
  const file = resolveTypedPath(options.cwd, arg)
  const named = { file, path: arg, name: basename(resolve(file)), isNamedByUser: true }
  if (found.isFile()) yield named
  else if (found.isDirectory())
    yield* walkFolder(
      { file, path: arg, root: file },
      options.all ? IgnoreRules.none : await IgnoreRules.around(file),
      options,
    )
  else yield specialFileItem(named)
}

/** A folder, and the folder in which the walk started. */
interface Folder {
  /** Absolute, as `root`. */
  readonly file: string
  /** Path to show; starts as the user typed it. */
  readonly path: string
  readonly root: string
}

async function* walkFolder(
  { file: folder, path: shown, root }: Folder,
  rules: IgnoreRules,
  options: WalkOptions,
): AsyncGenerator<WalkedItem> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: unknown) => error as Error)
  if (entries instanceof Error) {
    yield { kind: 'failed', problem: { path: shown, ...systemProblem(entries) } }
    return
  }
  entries.sort((a, b) => (a.name < b.name ? -1 : 1))
  for (const entry of entries) {
    const file = join(folder, entry.name)
    const path = join(shown, entry.name)
    const met = { file, path, name: withForwardSlashes(relative(root, file)), isNamedByUser: false }
    if (isExcluded(met, entry, rules, options)) continue
    if (entry.isDirectory()) {
      const inside = options.all ? rules : await rules.within(file)
      yield* walkFolder({ file, path, root }, inside, options)
    } else if (entry.isFile()) yield met
    else if (entry.isSymbolicLink())
      yield { kind: 'skipped', path, as: 'symbolic links', reason: 'not followed' }
    else yield specialFileItem(met)
  }
}

function isExcluded(met: FileToRead, entry: Dirent, rules: IgnoreRules, { all }: WalkOptions): boolean {
  if (entry.name === '.git') return true
  return !all && (entry.name.startsWith('.') || rules.ignores(met.file, entry.isDirectory()))
}

async function* walkGlob(pattern: string, { cwd, all }: WalkOptions): AsyncGenerator<WalkedItem> {
  const { base: shown, rest } = splitGlob(pattern)
  const base = resolve(cwd, shown)
  const names = await glob(rest, { cwd: base, dot: all, followSymbolicLinks: false, ignore: ['**/.git/**'] })
  if (names.length === 0) {
    yield { kind: 'failed', problem: { path: pattern, code: 'ENOENT', message: 'no files match' } }
    return
  }
  const rules = new Map<string, Promise<IgnoreRules>>()
  for (const name of names.sort()) {
    const file = join(base, name)
    if (all || !(await isIgnored(base, name.split('/'), rules)))
      yield { file, path: join(shown, name), name, isNamedByUser: false }
  }
}

/** Returns true if a path, or a folder between it and the base of the glob, is ignored. */
async function isIgnored(
  base: string,
  steps: string[],
  known: Map<string, Promise<IgnoreRules>>,
): Promise<boolean> {
  let rules = await getOrCreate(known, base, () => IgnoreRules.around(base))
  for (const [index] of steps.entries()) {
    const path = join(base, ...steps.slice(0, index + 1))
    const isFolder = index < steps.length - 1
    if (rules.ignores(path, isFolder)) return true
    if (isFolder) rules = await getOrCreate(known, path, () => rules.within(path))
  }
  return false
}

function getOrCreate<T>(known: Map<string, Promise<T>>, key: string, make: () => Promise<T>): Promise<T> {
  const found = known.get(key) ?? make()
  known.set(key, found)
  return found
}

/** Splits a glob into its base folder and the pattern below it. */
function splitGlob(pattern: string): { base: string; rest: string } {
  const steps = withForwardSlashes(pattern).split('/')
  const magic = steps.findIndex(step => isDynamicPattern(step))
  const base = steps.slice(0, magic).join('/')
  return { base: base || (isAbsolute(pattern) ? '/' : '.'), rest: steps.slice(magic).join('/') }
}

function withForwardSlashes(path: string): string {
  return sep === '/' ? path : path.split(sep).join('/')
}

function systemProblem(error: Error): { code: string; message: string } {
  const { code, message } = systemRefusal(error)
  return { code, message }
}
