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
 * Maximum number of lines to show before asking whether to trust a folder. If there are more lines, the user is not
 * asked.
 */
const linesShownMax = 60

export interface TrustOptions {
  /** Profile that does not include the settings of the folder. */
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
 * are always used. All other settings are used only in a trusted folder. The user is asked only about files that
 * would have an effect.
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
  const untrustedFiles = filesNeedingTrust(files, profileName, options.profile)
  if (untrustedFiles.length === 0) return { settings: trustedSettings, ignored: [] }
  const decision = await decideTrust(files.folder, untrustedFiles, options)
  if (decision === true)
    return {
      settings: {
        ...trustedSettings,
        ...Object.fromEntries(untrustedFiles.flatMap(({ settings }) => Object.entries(settings))),
      },
      ignored: [],
    }
  const ignored = untrustedFiles.map(({ file }) => file)
  if (decision !== false) {
    const selectsRuntime = untrustedFiles.some(({ settings }) => settings.config === undefined)
    return { settings: trustedSettings, ignored, refusal: { error: decision, selectsRuntime } }
  }
  for (const line of untrustedFiles.flatMap(ignoredFileLines)) options.note(line)
  return { settings: trustedSettings, ignored }
}

/** Returns the error if the content of the file caused it. Throws other errors. */
function contentError(error: unknown): WbError {
  if (error instanceof WbError) return error
  throw error
}

/**
 * Returns the files that would have an effect, and therefore need trust. A file has no effect if a flag, an environment
 * variable or the address of a runtime overrides it.
 *
 * @param profileName  name of the profile in `.wb.yaml`
 */
function filesNeedingTrust(
  files: FolderFilePaths,
  profileName: string | undefined,
  profile: Profile,
): UntrustedFile[] {
  const { name, nameSource, url, urlSource, local, dataDir, dataDirSource, config } = profile
  const untrustedFiles: UntrustedFile[] = []
  const selectsProfile =
    !local && profileName !== undefined && nameSource === 'wb profiles use' && profileName !== name
  if (selectsProfile)
    untrustedFiles.push({
      file: files.project!,
      flag: `--profile ${profileName}`,
      settings: { profile: profileName },
    })
  if (url !== undefined && !(selectsProfile && urlSource === 'profile')) return untrustedFiles
  if (files.dataDir !== undefined && dataDirSource === 'platform')
    untrustedFiles.push({
      file: `${files.dataDir}/`,
      flag: `--data-dir ${shellWord(files.dataDir)}`,
      settings: { dataDir: files.dataDir },
    })
  const hasExplicitConfig = config.flag !== undefined || config.variable !== undefined
  const isDataDirConfig = files.config === join(realFolder(dataDir), 'workbase.yaml')
  if (files.config !== undefined && !hasExplicitConfig && !isDataDirConfig)
    untrustedFiles.push({
      file: files.config,
      flag: `--config ${shellWord(files.config)}`,
      settings: { config: files.config },
    })
  return untrustedFiles
}

/**
 * Returns true if the files may be used, and false if the command continues without them. Returns an error if commands
 * that depend on the files must fail.
 */
async function decideTrust(
  folder: string,
  untrustedFiles: readonly UntrustedFile[],
  options: TrustOptions,
): Promise<boolean | UsageError> {
  const { settingsDir } = options.profile
  const survey = await surveyFolder(folder)
  const previous = findDecision(settingsDir, folder)
  const isDecided =
    previous !== undefined && survey.fault === undefined && isUnchanged(previous.files, survey.files)
  if (isDecided && previous.trusted) return true
  if (await isServerRunning(untrustedFiles, options.profile)) return false
  if (previous?.trusted && (survey.fault !== undefined || !canAskAbout(survey, previous, options)))
    return changedError(folder, previous, survey)
  if (options.isCi) return untrustedInCiError(untrustedFiles, survey)
  if (isDecided || survey.fault !== undefined || !canAskAbout(survey, previous, options)) return false
  const isTrusted = await askToTrust(folder, previous, survey, options)
  await storeDecision(settingsDir, folder, createDecision(options.clock, isTrusted, survey.files))
  return isTrusted
}

/**
 * Returns true if only configuration files are untrusted, and a server is running. Commands then use the
 * server, which has already read its configuration.
 */
async function isServerRunning(
  untrustedFiles: readonly UntrustedFile[],
  { dataDir, asOperator }: Profile,
): Promise<boolean> {
  if (asOperator || untrustedFiles.some(({ settings }) => settings.config === undefined)) return false
  return (await findLocalServer(dataDir)) !== undefined
}

function canAskAbout(
  { files }: FolderSurvey,
  previous: TrustDecision | undefined,
  { confirm }: TrustOptions,
): boolean {
  return confirm !== undefined && surveyLines(previous, files).length <= linesShownMax
}

function surveyLines(previous: TrustDecision | undefined, files: FolderSurvey['files']): string[] {
  return previous ? diffLines(previous.files, files) : fileLines(files)
}

async function askToTrust(
  folder: string,
  previous: TrustDecision | undefined,
  { files }: FolderSurvey,
  options: TrustOptions,
) {
  const path = plainLine(folder)
  options.warn(
    previous
      ? `  The files of ${path} have changed since you ${previous.trusted ? 'trusted' : 'declined to trust'} them:`
      : `  The folder ${path} contains files that wb would use:`,
  )
  for (const line of surveyLines(previous, files)) options.warn(line)
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
  const [survey, decision] = [await surveyFolder(folder), findDecision(settingsDir, folder)]
  if (!decision?.trusted || survey.fault !== undefined || !isUnchanged(decision.files, survey.files))
    throw changedError(folder, decision, survey)
}

function changedError(
  folder: string,
  decision: TrustDecision | undefined,
  { files, fault }: FolderSurvey,
): UsageError {
  if (fault !== undefined) return new UsageError(`the files of ${folder} can no longer be trusted: ${fault}`)
  const lines = surveyLines(decision, files)
  const visibleLines = lines.length > linesShownMax ? [] : lines.map(line => line.slice(2))
  return new UsageError(`the files of ${folder} have changed since you trusted them`, [
    ...visibleLines,
    `wb trust ${shellWord(folder)}    trusts their current content`,
  ])
}

function untrustedInCiError(untrustedFiles: readonly UntrustedFile[], { fault }: FolderSurvey): UsageError {
  const [{ file }] = untrustedFiles as [UntrustedFile, ...UntrustedFile[]]
  return new UsageError(`${file} is not trusted (in CI, wb does not ask)`, [
    ...untrustedFiles.map(({ flag }) => `${flag}    uses it without trust`),
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
