import { join } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import { shellWord } from '../../base/shell-word.ts'
import { WbError } from '../../contract/errors.ts'
import { UsageError } from '../errors.ts'
import { type FolderSurvey, findLocalServer, readProjectFile, surveyFolder } from '../local.ts'
import type { FolderSettings, Profile } from '../settings/profile.ts'
import { plainLine } from '../terminal/terminal-text.ts'
import { createDecision, findDecision, isUnchanged, storeDecision, type TrustDecision } from './decisions.ts'
import { type FolderFilePaths, realFolder } from './folder-files.ts'
import { diffLines, fileLines, untrustedFileMessage } from './trust-lines.ts'

/** Maximum number of lines to show before asking. With more, the user is not asked. */
const linesShownMax = 60

export interface TrustOptions {
  /** Settings without these files. */
  readonly profile: Profile
  readonly clock: Clock
  /** True in CI, where untrusted files are an error. */
  readonly isCi: boolean
  note(line: string): void
  warn(line: string): void
  /** Asks the user; undefined if there is no terminal. */
  readonly confirm: ((question: string) => Promise<boolean>) | undefined
}

/** Result of applying the files of a folder. */
export interface FolderResult {
  /** Settings from the files that are used. */
  readonly settings: FolderSettings
  /** Files that are not used because the folder is not trusted. */
  readonly ignored: readonly string[]
  readonly refusal?: TrustRefusal
}

/** Reason to refuse what depends on these files. */
export interface TrustRefusal {
  readonly error: Error
  /** True if the files would select the runtime, and with it the login to send. */
  readonly selectsRuntime: boolean
}

/** A file that would be used if its folder were trusted, and the flag with the same effect. */
interface UntrustedFile {
  readonly file: string
  readonly flag: string
  readonly settings: FolderSettings
}

/**
 * Returns the settings from the files of the working directory. The workspace and knowledge base of
 * `.wb.yaml` are always used; all other settings only in a trusted folder. Asks only about files that would
 * have an effect.
 *
 * @returns a refusal if `.wb.yaml` is invalid, if a file is untrusted in CI, or if a trusted file has changed and the user cannot be asked
 * @see docs/security.md#rule-6
 */
export async function resolveFolderSettings(
  files: FolderFilePaths,
  options: TrustOptions,
): Promise<FolderResult> {
  const project = files.project === undefined ? {} : await readProjectFile(files.project).catch(contentError)
  if (project instanceof Error)
    return { settings: {}, ignored: [], refusal: { error: project, selectsRuntime: true } }
  const { profile: named, ...places } = project
  const wanted = untrustedFiles(files, named, options.profile)
  if (wanted.length === 0) return { settings: places, ignored: [] }
  const isTrusted = await decideTrust(files.folder, wanted, options)
  if (isTrusted === true)
    return {
      settings: {
        ...places,
        ...Object.fromEntries(wanted.flatMap(({ settings }) => Object.entries(settings))),
      },
      ignored: [],
    }
  const ignored = wanted.map(({ file }) => file)
  if (isTrusted !== false) {
    const selectsRuntime = wanted.some(({ settings }) => settings.config === undefined)
    return { settings: places, ignored, refusal: { error: isTrusted, selectsRuntime } }
  }
  for (const line of wanted.flatMap(ignoredFileLines)) options.note(line)
  return { settings: places, ignored }
}

/** Returns an error in the content of a file. Throws other errors. */
function contentError(error: unknown): WbError {
  if (error instanceof WbError) return error
  throw error
}

/**
 * Returns the files that would have an effect. Files that flags, the environment or an address override
 * need no trust.
 */
function untrustedFiles(
  files: FolderFilePaths,
  named: string | undefined,
  profile: Profile,
): UntrustedFile[] {
  const { name, nameFrom, url, urlFrom, local, dataDir, dataDirFrom, config } = profile
  const wanted: UntrustedFile[] = []
  const choosesProfile = !local && named !== undefined && nameFrom === 'wb profiles use' && named !== name
  if (choosesProfile)
    wanted.push({ file: files.project!, flag: `--profile ${named}`, settings: { profile: named } })
  if (url !== undefined && !(choosesProfile && urlFrom === 'profile')) return wanted
  if (files.dataDir !== undefined && dataDirFrom === 'platform')
    wanted.push({
      file: `${files.dataDir}/`,
      flag: `--data-dir ${shellWord(files.dataDir)}`,
      settings: { dataDir: files.dataDir },
    })
  const isNamed = config.flag !== undefined || config.variable !== undefined
  if (files.config !== undefined && !isNamed && files.config !== join(realFolder(dataDir), 'workbase.yaml'))
    wanted.push({
      file: files.config,
      flag: `--config ${shellWord(files.config)}`,
      settings: { config: files.config },
    })
  return wanted
}

/** Returns true if the files may be used, or an error if the decision matters but cannot be made. */
async function decideTrust(
  folder: string,
  wanted: readonly UntrustedFile[],
  options: TrustOptions,
): Promise<boolean | UsageError> {
  const { settingsDir } = options.profile
  const survey = await surveyFolder(folder)
  const before = findDecision(settingsDir, folder)
  const isKnown =
    before !== undefined && survey.fault === undefined && isUnchanged(before.files, survey.files)
  if (isKnown && before.trusted) return true
  if (await isServerRunning(wanted, options.profile)) return false
  if (before?.trusted && (survey.fault !== undefined || !canAskAbout(survey, before, options)))
    return changedError(folder, before, survey)
  if (options.isCi) return untrustedInCiError(wanted, survey)
  if (isKnown || survey.fault !== undefined || !canAskAbout(survey, before, options)) return false
  const isTrusted = await askToTrust(folder, before, survey, options)
  await storeDecision(settingsDir, folder, createDecision(options.clock, isTrusted, survey.files))
  return isTrusted
}

/** Returns true if a server is running, because it has its own configuration. */
async function isServerRunning(
  wanted: readonly UntrustedFile[],
  { dataDir, asOperator }: Profile,
): Promise<boolean> {
  if (asOperator || wanted.some(({ settings }) => settings.config === undefined)) return false
  return (await findLocalServer(dataDir)) !== undefined
}

function canAskAbout(
  { files }: FolderSurvey,
  before: TrustDecision | undefined,
  { confirm }: TrustOptions,
): boolean {
  return confirm !== undefined && surveyLines(before, files).length <= linesShownMax
}

function surveyLines(before: TrustDecision | undefined, files: FolderSurvey['files']): string[] {
  return before ? diffLines(before.files, files) : fileLines(files)
}

async function askToTrust(
  folder: string,
  before: TrustDecision | undefined,
  { files }: FolderSurvey,
  options: TrustOptions,
) {
  const place = plainLine(folder)
  options.warn(
    before
      ? `  The files of ${place} have changed since you ${before.trusted ? 'trusted' : 'declined to trust'} them:`
      : `  The folder ${place} contains files that wb would use:`,
  )
  for (const line of surveyLines(before, files)) options.warn(line)
  options.warn('  Such files can send keys and documents to other hosts, and start programs.')
  return options.confirm!('Trust them?')
}

/**
 * Checks that the files that a running server depends on have not changed since they were trusted.
 *
 * @throws UsageError  they have changed
 */
export async function requireStillTrusted(profile: Profile): Promise<void> {
  const { config, dataDir, dataDirFrom, settingsDir } = profile
  const file = config.trusted ?? (dataDirFrom === 'working directory' ? dataDir : undefined)
  if (file === undefined) return
  const folder = join(file, '..')
  const [survey, before] = [await surveyFolder(folder), findDecision(settingsDir, folder)]
  if (!before?.trusted || survey.fault !== undefined || !isUnchanged(before.files, survey.files))
    throw changedError(folder, before, survey)
}

function changedError(
  folder: string,
  before: TrustDecision | undefined,
  { files, fault }: FolderSurvey,
): UsageError {
  if (fault !== undefined) return new UsageError(`the files of ${folder} can no longer be trusted: ${fault}`)
  const lines = surveyLines(before, files)
  const shown = lines.length > linesShownMax ? [] : lines.map(line => line.slice(2))
  return new UsageError(`the files of ${folder} have changed since you trusted them`, [
    ...shown,
    `wb trust ${shellWord(folder)}    trusts their current content`,
  ])
}

function untrustedInCiError(wanted: readonly UntrustedFile[], { fault }: FolderSurvey): UsageError {
  const [{ file }] = wanted as [UntrustedFile, ...UntrustedFile[]]
  return new UsageError(`${file} is not trusted (in CI, wb does not ask)`, [
    ...wanted.map(({ flag }) => `${flag}    uses it without trust`),
    fault ?? 'wb trust    trusts the files of this folder',
  ])
}

/**
 * Returns lines about a file that is not used. The code that reads the configuration reports configuration
 * files.
 */
function ignoredFileLines({ file, flag, settings }: UntrustedFile): string[] {
  if (settings.config !== undefined) return []
  return [`  ${untrustedFileMessage(file)}:`, `    ${flag}`]
}
