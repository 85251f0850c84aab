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

/**
 * Maximum number of lines to show before the question whether to trust a folder. With more, the user is not
 * asked.
 */
const linesShownMax = 60

export interface TrustOptions {
  /** Settings without the files of the folder. */
  readonly profile: Profile
  readonly clock: Clock
  /** True in CI, where untrusted files are an error. */
  readonly isCi: boolean
  note(line: string): void
  warn(line: string): void
  /** Asks a yes-or-no question; undefined if there is no terminal. */
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

/** Error for commands that depend on files that cannot be used. */
export interface TrustRefusal {
  readonly error: Error
  /** True if the files select the runtime, and with it the login to send. */
  readonly selectsRuntime: boolean
}

/** A file that would be used if its folder were trusted, and the flag with the same effect. */
interface UntrustedFile {
  readonly file: string
  readonly flag: string
  readonly settings: FolderSettings
}

/**
 * Returns the settings from the files of the working directory. The workspace and knowledge base of `.wb.yaml`
 * are always used; all other settings only in a trusted folder. The user is asked only about files that would
 * have an effect.
 *
 * @returns a refusal if `.wb.yaml` is invalid, if a file is not trusted in CI, or if a trusted file has changed
 *   and the user cannot be asked
 * @see docs/security.md#rule-6
 */
export async function resolveFolderSettings(
  files: FolderFilePaths,
  options: TrustOptions,
): Promise<FolderResult> {
  const project = files.project === undefined ? {} : await readProjectFile(files.project).catch(contentError)
  if (project instanceof Error)
    return { settings: {}, ignored: [], refusal: { error: project, selectsRuntime: true } }
  const { profile: profileName, ...trustedSettings } = project
  const untrusted = filesNeedingTrust(files, profileName, options.profile)
  if (untrusted.length === 0) return { settings: trustedSettings, ignored: [] }
  const decision = await decideTrust(files.folder, untrusted, options)
  if (decision === true)
    return {
      settings: {
        ...trustedSettings,
        ...Object.fromEntries(untrusted.flatMap(({ settings }) => Object.entries(settings))),
      },
      ignored: [],
    }
  const ignored = untrusted.map(({ file }) => file)
  if (decision !== false) {
    const selectsRuntime = untrusted.some(({ settings }) => settings.config === undefined)
    return { settings: trustedSettings, ignored, refusal: { error: decision, selectsRuntime } }
  }
  for (const line of untrusted.flatMap(ignoredFileLines)) options.note(line)
  return { settings: trustedSettings, ignored }
}

/** Returns an error that the content of a file caused. Throws other errors. */
function contentError(error: unknown): WbError {
  if (error instanceof WbError) return error
  throw error
}

/**
 * Returns the files that would have an effect. Files that flags, the environment or an address override have none, so
 * they do not need trust.
 *
 * @param profileName  name of the profile in `.wb.yaml`
 */
function filesNeedingTrust(
  files: FolderFilePaths,
  profileName: string | undefined,
  profile: Profile,
): UntrustedFile[] {
  const { name, nameSource, url, urlSource, local, dataDir, dataDirSource, config } = profile
  const untrusted: UntrustedFile[] = []
  const selectsProfile =
    !local && profileName !== undefined && nameSource === 'wb profiles use' && profileName !== name
  if (selectsProfile)
    untrusted.push({
      file: files.project!,
      flag: `--profile ${profileName}`,
      settings: { profile: profileName },
    })
  if (url !== undefined && !(selectsProfile && urlSource === 'profile')) return untrusted
  if (files.dataDir !== undefined && dataDirSource === 'platform')
    untrusted.push({
      file: `${files.dataDir}/`,
      flag: `--data-dir ${shellWord(files.dataDir)}`,
      settings: { dataDir: files.dataDir },
    })
  const hasNamedConfig = config.flag !== undefined || config.variable !== undefined
  const isOfDataDir = files.config === join(realFolder(dataDir), 'workbase.yaml')
  if (files.config !== undefined && !hasNamedConfig && !isOfDataDir)
    untrusted.push({
      file: files.config,
      flag: `--config ${shellWord(files.config)}`,
      settings: { config: files.config },
    })
  return untrusted
}

/**
 * Returns true if the files may be used, false if the command continues without them, or the error for commands that
 * depend on them.
 */
async function decideTrust(
  folder: string,
  untrusted: readonly UntrustedFile[],
  options: TrustOptions,
): Promise<boolean | UsageError> {
  const { settingsDir } = options.profile
  const survey = await surveyFolder(folder)
  const before = findDecision(settingsDir, folder)
  const isDecided =
    before !== undefined && survey.fault === undefined && isUnchanged(before.files, survey.files)
  if (isDecided && before.trusted) return true
  if (await isServerRunning(untrusted, options.profile)) return false
  if (before?.trusted && (survey.fault !== undefined || !canAskAbout(survey, before, options)))
    return changedError(folder, before, survey)
  if (options.isCi) return untrustedInCiError(untrusted, survey)
  if (isDecided || survey.fault !== undefined || !canAskAbout(survey, before, options)) return false
  const isTrusted = await askToTrust(folder, before, survey, options)
  await storeDecision(settingsDir, folder, createDecision(options.clock, isTrusted, survey.files))
  return isTrusted
}

/**
 * Returns true if only configuration files are untrusted, and a server is running. Commands then use the
 * server, which has already read its configuration.
 */
async function isServerRunning(
  untrusted: readonly UntrustedFile[],
  { dataDir, asOperator }: Profile,
): Promise<boolean> {
  if (asOperator || untrusted.some(({ settings }) => settings.config === undefined)) return false
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
  const path = plainLine(folder)
  options.warn(
    before
      ? `  The files of ${path} have changed since you ${before.trusted ? 'trusted' : 'declined to trust'} them:`
      : `  The folder ${path} contains files that wb would use:`,
  )
  for (const line of surveyLines(before, files)) options.warn(line)
  options.warn('  Such files can send keys and documents to other hosts, and start programs.')
  return options.confirm!('Trust them?')
}

/**
 * Checks that the trusted files on which a running server depends have not changed since the decision.
 *
 * @throws UsageError  they have changed
 */
export async function requireStillTrusted(profile: Profile): Promise<void> {
  const { config, dataDir, dataDirSource, settingsDir } = profile
  const file = config.trusted ?? (dataDirSource === 'working directory' ? dataDir : undefined)
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

function untrustedInCiError(untrusted: readonly UntrustedFile[], { fault }: FolderSurvey): UsageError {
  const [{ file }] = untrusted as [UntrustedFile, ...UntrustedFile[]]
  return new UsageError(`${file} is not trusted (in CI, wb does not ask)`, [
    ...untrusted.map(({ flag }) => `${flag}    uses it without trust`),
    fault ?? 'wb trust    trusts the files of this folder',
  ])
}

/**
 * Returns lines about a file that is not used. Configuration files are omitted, because they are reported when the
 * configuration is read.
 */
function ignoredFileLines({ file, flag, settings }: UntrustedFile): string[] {
  if (settings.config !== undefined) return []
  return [`  ${untrustedFileMessage(file)}:`, `    ${flag}`]
}
