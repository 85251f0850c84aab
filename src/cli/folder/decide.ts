import { join } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import { shellWord } from '../../base/shell-word.ts'
import { WbError } from '../../contract/errors.ts'
import { UsageError } from '../faults.ts'
import { type FolderSurvey, findLocalServer, readProjectFile, surveyFolder } from '../local.ts'
import type { FolderSays, Profile } from '../settings/profile.ts'
import { plainLine } from '../terminal/terminal-text.ts'
import { type FilesHere, realFolder } from './here.ts'
import { diffLines, fileLines, notCounting } from './shown.ts'
import { type Decision, decide, decisionNow, decisionOn, isUnchanged } from './trusted.ts'

/** Lines of what would count that a person reads before they answer; of more, nobody is asked. */
const linesAskedMax = 60

export interface Asking {
  /** As it is without these files. */
  readonly profile: Profile
  readonly clock: Clock
  /** Nobody is there by rule: what is not trusted is an error. */
  readonly isCi: boolean
  note(line: string): void
  warn(line: string): void
  /** Absent where nobody can answer. */
  readonly agree: ((question: string) => Promise<boolean>) | undefined
}

/** What came of the files of a folder. */
export interface Decided {
  /** What they say, as far as they count. */
  readonly says: FolderSays
  /** Those that would count if the folder were trusted. */
  readonly aside: readonly string[]
  readonly refusal?: Refusal
}

/** Why nothing is done that hangs on these files. */
export interface Refusal {
  readonly error: Error
  /** They would say which runtime is meant, and so whose login is; else only how the one on this machine goes on. */
  readonly namesRuntime: boolean
}

/** A file that would count if its folder were trusted, and the flag that names the same. */
interface Wanted {
  readonly file: string
  readonly flag: string
  readonly says: FolderSays
}

/**
 * What the files of the working directory say, as far as they count: the workspace and the knowledge base of `.wb.yaml`
 * always, all else where the folder is trusted. Only files that would change something are asked about.
 *
 * @returns a refusal where `.wb.yaml` holds what it may not; in CI, a file is not trusted; anywhere, it was, and has
 *          changed, and nobody is there to ask
 * @see docs/security.md#rule-6
 */
export async function folderSays(files: FilesHere, asking: Asking): Promise<Decided> {
  const project = files.project === undefined ? {} : await readProjectFile(files.project).catch(faultOf)
  if (project instanceof Error)
    return { says: {}, aside: [], refusal: { error: project, namesRuntime: true } }
  const { profile: named, ...places } = project
  const wanted = wantedOf(files, named, asking.profile)
  if (wanted.length === 0) return { says: places, aside: [] }
  const isTrusted = await isTrustedNow(files.folder, wanted, asking)
  if (isTrusted === true)
    return {
      says: { ...places, ...Object.fromEntries(wanted.flatMap(({ says }) => Object.entries(says))) },
      aside: [],
    }
  const aside = wanted.map(({ file }) => file)
  if (isTrusted !== false) {
    const namesRuntime = wanted.some(({ says }) => says.config === undefined)
    return { says: places, aside, refusal: { error: isTrusted, namesRuntime } }
  }
  for (const line of wanted.flatMap(leftAside)) asking.note(line)
  return { says: places, aside }
}

/** @throws whatever is no word on what the file holds */
function faultOf(error: unknown): WbError {
  if (error instanceof WbError) return error
  throw error
}

/** Flags, the environment and an address stand over these files: what they take the place of needs no trust. */
function wantedOf(files: FilesHere, named: string | undefined, profile: Profile): Wanted[] {
  const { name, nameFrom, url, urlFrom, local, dataDir, dataDirFrom, config } = profile
  const wanted: Wanted[] = []
  const choosesProfile = !local && named !== undefined && nameFrom === 'wb profiles use' && named !== name
  if (choosesProfile)
    wanted.push({ file: files.project!, flag: `--profile ${named}`, says: { profile: named } })
  if (url !== undefined && !(choosesProfile && urlFrom === 'profile')) return wanted
  if (files.dataDir !== undefined && dataDirFrom === 'platform')
    wanted.push({
      file: `${files.dataDir}/`,
      flag: `--data-dir ${shellWord(files.dataDir)}`,
      says: { dataDir: files.dataDir },
    })
  const isNamed = config.flag !== undefined || config.variable !== undefined
  if (files.config !== undefined && !isNamed && files.config !== join(realFolder(dataDir), 'workbase.yaml'))
    wanted.push({
      file: files.config,
      flag: `--config ${shellWord(files.config)}`,
      says: { config: files.config },
    })
  return wanted
}

/** @returns an error where neither is known and it matters */
async function isTrustedNow(
  folder: string,
  wanted: readonly Wanted[],
  asking: Asking,
): Promise<boolean | UsageError> {
  const { settingsDir } = asking.profile
  const survey = await surveyFolder(folder)
  const before = decisionOn(settingsDir, folder)
  const isKnown =
    before !== undefined && survey.fault === undefined && isUnchanged(before.files, survey.files)
  if (isKnown && before.trusted) return true
  if (await isOvertaken(wanted, asking.profile)) return false
  if (before?.trusted && (survey.fault !== undefined || !mayAsk(survey, before, asking)))
    return changed(folder, before, survey)
  if (asking.isCi) return untrustedInCi(wanted, survey)
  if (isKnown || survey.fault !== undefined || !mayAsk(survey, before, asking)) return false
  const isTrusted = await ask(folder, before, survey, asking)
  await decide(settingsDir, folder, decisionNow(asking.clock, isTrusted, survey.files))
  return isTrusted
}

/** A server of the data directory has its own configuration: no other is read beside it. */
async function isOvertaken(wanted: readonly Wanted[], { dataDir, asOperator }: Profile): Promise<boolean> {
  if (asOperator || wanted.some(({ says }) => says.config === undefined)) return false
  return (await findLocalServer(dataDir)) !== undefined
}

function mayAsk({ files }: FolderSurvey, before: Decision | undefined, { agree }: Asking): boolean {
  return agree !== undefined && linesOf(before, files).length <= linesAskedMax
}

function linesOf(before: Decision | undefined, files: FolderSurvey['files']): string[] {
  return before ? diffLines(before.files, files) : fileLines(files)
}

async function ask(folder: string, before: Decision | undefined, { files }: FolderSurvey, asking: Asking) {
  const place = plainLine(folder)
  asking.warn(
    before
      ? `  The files of ${place} have changed since you ${before.trusted ? 'trusted them' : 'left them aside'}:`
      : `  The folder ${place} brings files that would count here:`,
  )
  for (const line of linesOf(before, files)) asking.warn(line)
  asking.warn('  Such files can send keys and documents elsewhere, and start programs.')
  return asking.agree!('Let them count?')
}

/**
 * What decides how a runtime goes on is still what was trusted when it began.
 *
 * @throws UsageError  it has changed since
 */
export async function requireStillTrusted(profile: Profile): Promise<void> {
  const { config, dataDir, dataDirFrom, settingsDir } = profile
  const file = config.trusted ?? (dataDirFrom === 'working directory' ? dataDir : undefined)
  if (file === undefined) return
  const folder = join(file, '..')
  const [survey, before] = [await surveyFolder(folder), decisionOn(settingsDir, folder)]
  if (!before?.trusted || survey.fault !== undefined || !isUnchanged(before.files, survey.files))
    throw changed(folder, before, survey)
}

function changed(folder: string, before: Decision | undefined, { files, fault }: FolderSurvey): UsageError {
  if (fault !== undefined)
    return new UsageError(`the files of ${folder} cannot be trusted any more: ${fault}`)
  const lines = linesOf(before, files)
  const shown = lines.length > linesAskedMax ? [] : lines.map(line => line.slice(2))
  return new UsageError(`the files of ${folder} are not those that you trusted`, [
    ...shown,
    `wb trust ${shellWord(folder)}    lets them count as they are now`,
  ])
}

function untrustedInCi(wanted: readonly Wanted[], { fault }: FolderSurvey): UsageError {
  const [{ file }] = wanted as [Wanted, ...Wanted[]]
  return new UsageError(`${file} is not trusted, and nobody is here to ask (CI is set)`, [
    ...wanted.map(({ flag }) => `${flag}    takes it as it is`),
    fault ?? 'wb trust    lets the files of this folder count',
  ])
}

/** The configuration is told of where one is looked for. */
function leftAside({ file, flag, says }: Wanted): string[] {
  if (says.config !== undefined) return []
  return [`  ${notCounting(file)}:`, `    ${flag}`]
}
