import { Command } from '@oclif/core/command'
import type { Config } from '@oclif/core/config'
import type { ArgInput, Input, ParserOutput } from '@oclif/core/interfaces'
import type { Client } from '../../client/client.ts'
import { Session } from '../connection/session.ts'
import { removeCredential } from '../environment.ts'
import { Interrupted } from '../errors.ts'
import type { Io } from '../io.ts'
import { parseRuntimeAddress } from '../settings/address.ts'
import { localConflict, type Profile, readProfile } from '../settings/profile.ts'
import { jqFilter } from '../terminal/jq.ts'
import { formatCounted, type Output } from '../terminal/output.ts'
import { type Progress, silentProgress } from '../terminal/progress.ts'
import type { TrustRefusal } from '../trust/folder-settings.ts'
import { applyFolder } from './apply-folder.ts'
import type { NarrowingFlags } from './choices.ts'
import { createOutput, createProgress } from './command-output.ts'
import { contextFlags } from './context-flags.ts'
import { exit, exitStatus } from './exit.ts'
import { globalFlags } from './flags.ts'
import { hintsFor } from './hints.ts'
import { listenForInterrupts } from './interrupt.ts'
import { type MissingArgument, missingArguments } from './parse-error.ts'
import { Prompts } from './prompts.ts'
import { reportJson, reportLines, toReport } from './report.ts'

const backgroundNoteMs = 4_000

/** Parsed flags or arguments, by name. */
type ParsedValues = Record<string, unknown>

/** Runs a command: parses flags, opens the session, handles Ctrl-C, and reports errors. Commands extend `WbCommand`. */
export abstract class BaseCommand extends Command {
  static override baseFlags = globalFlags

  protected client!: Client
  protected output!: Output
  protected prompts!: Prompts
  protected profile!: Profile
  protected session!: Session
  #exitCode: number = exit.ok
  /** Aborts when the user presses Ctrl-C. */
  protected signal!: AbortSignal
  #progress: Progress = silentProgress
  /** True if this command creates the named profile when it does not exist. */
  protected readonly createsProfile: boolean = false
  /** True if this command asks about untrusted files in the working directory, or prints notes about them. */
  protected readonly usesFolderFiles: boolean = true
  /** True if suggestions may repeat the command line, because it never contains a credential. */
  protected readonly isSafeToRepeat: boolean = true
  /** True if this command finishes background work before it exits, unless the user adds `--no-wait`. */
  protected readonly finishesBackgroundWork: boolean = false
  /** Error message to print if the user presses Ctrl-C. */
  protected interruptMessage = 'interrupted'
  /** Error for requests that depend on untrusted files in the working directory. */
  #refusal: TrustRefusal | undefined
  #wait = false
  #debug = false
  /** True if errors are printed as JSON: with `--json`, but not with `--jq` alone. */
  #jsonErrors = false
  #stopListening = () => {}

  constructor(
    argv: string[],
    config: Config,
    protected readonly io: Io,
  ) {
    super(argv, config)
  }

  /** Runs the command and returns its exit status. */
  async execute(): Promise<number> {
    let failure: Error | undefined
    try {
      await this.init()
      await this.run()
    } catch (error) {
      failure = error as Error
      await this.catch(failure)
    } finally {
      await this.finally(failure)
    }
    return this.#exitCode
  }

  /** Sets the exit status of the command and of the process. */
  protected set exitCode(status: number) {
    this.#exitCode = status
    this.io.setExitStatus(status)
  }

  override async init(): Promise<void> {
    const { signal, stop } = listenForInterrupts(this.io.signals)
    this.signal = signal
    this.#stopListening = stop
    this.#jsonErrors = this.argv.includes('--json')
    this.output = createOutput(this.io, { json: this.#jsonErrors }, true)
    this.prompts = new Prompts(this.io, signal, this.#jsonErrors)
    const { flags, missing } = await this.#parseOrFindMissing()
    const filter = flags.jq === undefined ? undefined : await jqFilter(flags.jq, this.io.signals)
    this.#wait = this.finishesBackgroundWork && !flags['no-wait']
    this.#debug = flags.debug
    const profileFlags = {
      profile: flags.profile,
      url: flags.url,
      local: flags.local,
      // Some commands use this flag for the credential of a resource that they create.
      credential: Object.keys({ ...this.ctor.flags }).includes('credential') ? undefined : flags.credential,
      workspace: flags.workspace,
      dataDir: flags['data-dir'],
      config: flags.config,
      insecureHttp: flags['insecure-http'],
      asOperator: flags['as-operator'],
      mayBeNew: this.createsProfile,
    }
    this.profile = readProfile(profileFlags, this.io)
    this.output = createOutput(
      this.io,
      { ...flags, filter, contextFlags: contextFlags(flags) },
      this.profile.hasColors && !flags['no-color'],
    )
    this.prompts = new Prompts(this.io, signal, this.output.json)
    const { io, output, prompts, usesFolderFiles } = this
    const folderProfile = await applyFolder(this.profile, profileFlags, {
      io,
      output,
      prompts,
      usesFolderFiles,
    })
    this.#refusal = folderProfile.refusal
    removeCredential(this.io.env)
    this.#progress = createProgress(this.io, flags.quiet)
    this.useProfile(folderProfile.profile, folderProfile.refusal)
    for (const argument of missing) {
      const value = await this.promptForArgument(argument, flags as NarrowingFlags)
      this.argv.push(...(this.argv.includes('--') ? [value] : ['--', value]))
    }
  }

  /**
   * Throws if the command would depend on untrusted files in the working directory. Needed only in commands that read
   * the configuration directly, because the session checks requests to the runtime.
   *
   * @throws UsageError                the files are not trusted, or have changed
   * @throws WbError validation_error  `.wb.yaml` is invalid
   */
  protected requireTrustedFolder(): void {
    if (this.#refusal) throw this.#refusal.error
  }

  /**
   * Uses the runtime of a profile from now on. Omit `refusal` if the profile does not depend on files in the
   * working directory.
   */
  protected useProfile(profile: Profile, refusal?: TrustRefusal): void {
    this.profile = profile
    this.session = new Session(profile, this.io, this.output, this.#debug, this.signal, refusal)
    this.client = this.session.client
  }

  /**
   * Uses the runtime at an address from now on. For commands that take the address as an argument.
   *
   * @throws UsageError  the address is invalid, or is combined with `--local`
   */
  protected useUrl(address: string): void {
    const url = parseRuntimeAddress(address, 'URL')
    if (this.profile.local) throw localConflict('URL')
    this.useProfile({ ...this.profile, url, urlSource: '--url' })
  }

  /**
   * Parses flags and arguments. In a terminal, returns missing arguments instead of throwing, so that the
   * caller can prompt for them.
   */
  async #parseOrFindMissing() {
    const command = this.ctor as unknown as typeof BaseCommand
    try {
      return { ...(await this.parse(command)), missing: [] }
    } catch (error) {
      const missing = missingArguments(error)
      if (missing.length === 0 || !this.canAsk) throw error
      const { flags, baseFlags, strict } = command
      const args = Object.fromEntries(
        Object.entries(command.args).map(([name, arg]) => [name, { ...arg, required: false }]),
      )
      return { ...(await this.parse({ args, flags, baseFlags, strict })), missing }
    }
  }

  /** Parses the command line. Unlike oclif's default, does not read a missing argument from stdin. */
  protected override parse<F extends ParsedValues, B extends ParsedValues, A extends ParsedValues>(
    options: Input<F, B, A>,
    argv = this.argv,
  ): Promise<ParserOutput<F, B, A>> {
    const { flags, baseFlags, strict } = options
    const args = Object.fromEntries(
      Object.entries(options.args ?? {}).map(([name, arg]) => [name, { ...arg, ignoreStdin: true }]),
    ) as ArgInput<A>
    return super.parse({ args, flags, baseFlags, strict }, argv)
  }

  /** Asks for the value of a missing argument. */
  protected abstract promptForArgument(argument: MissingArgument, flags: NarrowingFlags): Promise<string>

  /** Progress display on stderr; silent in CI, with `--quiet`, and if stderr is not a terminal. */
  protected get progress(): Progress {
    return this.#progress
  }

  /** True if prompts are possible. @see Prompts.canAsk */
  protected get canAsk(): boolean {
    return this.prompts.canAsk
  }

  /** Shows a progress label until `work` settles, and returns its result. */
  protected async waitFor<T>(label: string, work: Promise<T>): Promise<T> {
    this.progress.spin(label)
    try {
      return await work
    } finally {
      this.progress.end()
    }
  }

  /** Command without arguments, as typed: `wb kb list`. */
  protected get commandName(): string {
    return `wb ${this.id?.replaceAll(':', ' ')}`
  }

  get #flags() {
    const { flags, baseFlags } = this.ctor
    return { ...baseFlags, ...flags }
  }

  override async catch(error: Error): Promise<void> {
    this.progress.end()
    const isInterrupted = error instanceof Interrupted || (this.signal.aborted && error.name === 'AbortError')
    const finalError = isInterrupted ? new Interrupted(this.interruptMessage) : error
    this.exitCode = exitStatus(finalError)
    const report = toReport(finalError)
    const { commandName, argv, isSafeToRepeat, profile, session } = this
    const failedCommand = {
      commandLine: { name: commandName, argv, isSafeToRepeat },
      flags: Object.keys(this.#flags),
      profile,
      session,
    }
    report.next = await hintsFor(finalError, report, failedCommand)
    if (this.#jsonErrors) this.output.trace(reportJson(report))
    else for (const line of reportLines(report, this.output.errorStyle)) this.output.warn(line)
    if (this.#debug) this.output.trace(errorDetails(error))
  }

  /** Prints a hint in a terminal if background work takes long. Returns a function that cancels the hint. */
  #noteBackgroundWorkLater(): () => void {
    return this.io.clock.after(backgroundNoteMs, () => {
      if (!this.output.interactive || this.signal.aborted) return
      this.progress.above(() =>
        this.output.note(
          '  finishing background work; press Ctrl-C to leave it for the next ingest or wb serve',
        ),
      )
    })
  }

  override async finally(error: Error | undefined): Promise<void> {
    try {
      const wait = this.#wait && !error
      const cancelNote = wait ? this.#noteBackgroundWorkLater() : () => {}
      const remainingTasks = await this.session
        ?.end({ wait, signal: this.signal, progress: this.progress })
        .finally(cancelNote)
      if (remainingTasks && this.finishesBackgroundWork)
        this.output.note(`  ${formatCounted(remainingTasks, 'task')} left for the next ingest or wb serve`)
    } catch (closeError) {
      if (!error) await this.catch(closeError as Error)
    } finally {
      this.#stopListening()
    }
  }
}

function errorDetails(error: Error): string {
  const facts = 'facts' in error ? `\n${JSON.stringify(error.facts)}` : ''
  const cause = error.cause instanceof Error ? `\ncaused by ${error.cause.stack}` : ''
  return `${error.stack}${facts}${cause}`
}
