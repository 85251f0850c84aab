import type { Dirent, Stats } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { basename, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { glob, isDynamicPattern } from 'tinyglobby'
import { resolveTypedPath } from '../resolve-typed-path.ts'
import { IgnoreRules } from './ignore-rules.ts'
import { type FileToRead, failOrSkip, type IngestItem, specialFileItem } from './ingest-item.ts'
import { systemFailure } from './read-text.ts'

export type WalkedItem = FileToRead | IngestItem

/** A folder that was fetched, such as a clone of a repository. */
export interface FetchedFolder {
  /** Absolute path. */
  readonly folder: string
  /** Argument that the user typed. */
  readonly shownAs: string
  /** Name that distinguishes its files from files of other arguments. */
  readonly label: string
}

/** A file, a folder or a glob. */
export type WalkArgument = string | FetchedFolder

export interface WalkOptions {
  /** Folder from which relative paths start. */
  readonly cwd: string
  /** True to include hidden files and files that `.gitignore` excludes. The folder `.git` is never included. */
  readonly all: boolean
}

/**
 * Yields the files that match the arguments (files, folders and globs) in the order of the arguments. The files of a
 * folder are sorted by name. Follows only symbolic links that are arguments, so a walk always ends and does not leave
 * its folder.
 */
export async function* walk(args: readonly WalkArgument[], options: WalkOptions): AsyncGenerator<WalkedItem> {
  const pathsByName = args.length > 1 ? new Map<string, string>() : undefined
  for (const arg of args)
    for await (const item of walkArgument(arg, options)) {
      const distinctItem = 'kind' in item ? item : withDistinctName(item, pathsByName, arg, options.cwd)
      if (distinctItem) yield distinctItem
    }
}

/**
 * Changes the name of a file if a file from another argument has the same name. Otherwise, the document of one file
 * would replace that of the other. The new name is relative to the working directory, or starts with the label of the
 * fetched folder. Returns undefined for a file that was already yielded.
 *
 * @param pathsByName  absolute paths of the files that were yielded; undefined if there is only one argument
 */
function withDistinctName(
  file: FileToRead,
  pathsByName: Map<string, string> | undefined,
  argument: WalkArgument,
  cwd: string,
): FileToRead | undefined {
  const path = resolve(file.file)
  const existing = pathsByName?.get(file.name)
  if (existing === path) return undefined
  const distinctName = () =>
    typeof argument === 'string' ? withForwardSlashes(relative(cwd, path)) : `${argument.label}/${file.name}`
  const name = existing === undefined ? file.name : distinctName()
  pathsByName?.set(name, path)
  return { ...file, name }
}

async function* walkArgument(arg: WalkArgument, options: WalkOptions): AsyncGenerator<WalkedItem> {
  if (typeof arg !== 'string') {
    const { folder, shownAs } = arg
    const rules = options.all ? IgnoreRules.none : await IgnoreRules.load(folder)
    yield* walkFolder({ folder, path: shownAs, root: folder }, rules, options)
    return
  }
  const stats = await stat(resolveTypedPath(options.cwd, arg)).catch((error: unknown) => error as Error)
  if (!(stats instanceof Error)) yield* walkExisting(arg, stats, options)
  else if ('code' in stats && stats.code === 'ENOENT' && isDynamicPattern(arg)) yield* walkGlob(arg, options)
  else yield { kind: 'failed', problem: { path: arg, ...systemProblem(stats) } }
}

async function* walkExisting(arg: string, stats: Stats, options: WalkOptions): AsyncGenerator<WalkedItem> {
  const file = resolveTypedPath(options.cwd, arg)
  const fileToRead = { file, path: arg, name: basename(resolve(file)), isNamedByUser: true }
  if (stats.isFile()) yield fileToRead
  else if (stats.isDirectory())
    yield* walkFolder(
      { folder: file, path: arg, root: file },
      options.all ? IgnoreRules.none : await IgnoreRules.load(file),
      options,
    )
  else yield specialFileItem(fileToRead)
}

/** A folder of a walk. */
interface Folder {
  /** Absolute path. */
  readonly folder: string
  /** Path to show, which starts with the argument as the user typed it. */
  readonly path: string
  /** Absolute path of the folder in which the walk started. */
  readonly root: string
}

async function* walkFolder(
  { folder, path: shownPath, root }: Folder,
  rules: IgnoreRules,
  options: WalkOptions,
): AsyncGenerator<WalkedItem> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: unknown) => error as Error)
  if (entries instanceof Error) {
    yield { kind: 'failed', problem: { path: shownPath, ...systemProblem(entries) } }
    return
  }
  if (isGitData(entries)) {
    yield failOrSkip(
      { path: shownPath, isNamedByUser: folder === root },
      { category: 'Git data', reason: 'the data of a Git repository' },
      {
        code: 'unsupported_file_type',
        message: 'it holds the data of a Git repository; ingest the folder of its working tree',
      },
    )
    return
  }
  entries.sort((a, b) => (a.name < b.name ? -1 : 1))
  for (const entry of entries) {
    const file = join(folder, entry.name)
    const path = shownPath.includes('://') ? `${shownPath}/${entry.name}` : join(shownPath, entry.name)
    const fileToRead = { file, path, name: withForwardSlashes(relative(root, file)), isNamedByUser: false }
    if (isExcluded(file, entry, rules, options)) continue
    if (entry.isDirectory()) {
      const folderRules = options.all ? rules : await rules.extend(file)
      yield* walkFolder({ folder: file, path, root }, folderRules, options)
    } else if (entry.isFile()) yield fileToRead
    else if (entry.isSymbolicLink())
      yield { kind: 'skipped', path, category: 'symbolic links', reason: 'not followed' }
    else yield specialFileItem(fileToRead)
  }
}

/** Returns true for a folder such as `.git`, or a repository without a working tree. */
function isGitData(entries: readonly Dirent[]): boolean {
  const names = new Set(entries.map(entry => entry.name))
  return ['HEAD', 'objects', 'refs'].every(name => names.has(name))
}

function isExcluded(path: string, entry: Dirent, rules: IgnoreRules, { all }: WalkOptions): boolean {
  if (entry.name === '.git') return true
  return !all && (entry.name.startsWith('.') || rules.ignores(path, entry.isDirectory()))
}

async function* walkGlob(pattern: string, { cwd, all }: WalkOptions): AsyncGenerator<WalkedItem> {
  const { base: shownBase, rest } = splitGlob(pattern)
  const base = resolve(cwd, shownBase)
  const names = await glob(rest, { cwd: base, dot: all, followSymbolicLinks: false, ignore: ['**/.git/**'] })
  if (names.length === 0) {
    yield { kind: 'failed', problem: { path: pattern, code: 'ENOENT', message: 'no files match' } }
    return
  }
  const rulesByFolder = new Map<string, Promise<IgnoreRules>>()
  for (const name of names.sort()) {
    const file = join(base, name)
    if (all || !(await isIgnored(base, name.split('/'), rulesByFolder)))
      yield { file, path: join(shownBase, name), name, isNamedByUser: false }
  }
}

/**
 * Returns true if a path, or a folder between it and the base of the glob, is ignored.
 *
 * @param rulesByFolder  cache of loaded rules
 */
async function isIgnored(
  base: string,
  names: string[],
  rulesByFolder: Map<string, Promise<IgnoreRules>>,
): Promise<boolean> {
  let rules = await getOrCreate(rulesByFolder, base, () => IgnoreRules.load(base))
  for (const [index] of names.entries()) {
    const path = join(base, ...names.slice(0, index + 1))
    const isFolder = index < names.length - 1
    if (rules.ignores(path, isFolder)) return true
    if (isFolder) rules = await getOrCreate(rulesByFolder, path, () => rules.extend(path))
  }
  return false
}

function getOrCreate<T>(cache: Map<string, Promise<T>>, key: string, create: () => Promise<T>): Promise<T> {
  const entry = cache.get(key) ?? create()
  cache.set(key, entry)
  return entry
}

/** Splits a glob into its base folder and the pattern below it. */
function splitGlob(pattern: string): { base: string; rest: string } {
  const segments = withForwardSlashes(pattern).split('/')
  const firstDynamic = segments.findIndex(segment => isDynamicPattern(segment))
  const base = segments.slice(0, firstDynamic).join('/')
  return { base: base || (isAbsolute(pattern) ? '/' : '.'), rest: segments.slice(firstDynamic).join('/') }
}

function withForwardSlashes(path: string): string {
  return sep === '/' ? path : path.split(sep).join('/')
}

function systemProblem(error: Error): { code: string; message: string } {
  const { code, message } = systemFailure(error)
  return { code, message }
}
