import { Command } from '@oclif/core/command'
import type { Config } from '@oclif/core/config'
import type { ArgInput, Input, ParserOutput } from '@oclif/core/interfaces'
import type { Client } from '../../client/client.ts'
import { Session } from '../connection/session.ts'
import { type Environment, hideCredential, isCi, takesUtf8 } from '../environment.ts'
import { Interrupted } from '../faults.ts'
import type { Refusal } from '../folder/decide.ts'
import { filesHere } from '../folder/here.ts'
import type { Io } from '../io.ts'
import { runtimeAddress } from '../settings/address.ts'
import { localConflict, type Profile, readProfile } from '../settings/profile.ts'
import * as person from '../terminal/ask.ts'
import { asciiSink } from '../terminal/charset.ts'
import { jqFilter } from '../terminal/jq.ts'
import { counted, Output, type OutputOptions, type Sink } from '../terminal/output.ts'
import { type Progress, silent, terminalProgress } from '../terminal/progress.ts'
import { again } from './again.ts'
import type { NarrowingFlags } from './choices.ts'
import { exit, exitStatus } from './exit.ts'
import { globalFlags } from './flags.ts'
import { interruption } from './interrupt.ts'
import { nextLines } from './next-lines.ts'
import { type MissingArgument, missingArguments } from './parse-fault.ts'
import { reportJson, reportLines, reportOf } from './report.ts'

/** Parsed flags or arguments, by name. */
type Values = Record<string, unknown>

/**
 * How a command starts and ends: its flags, the profile that it goes by, the connection, what Ctrl-C does, and how what
 * went wrong is told.
 */
export abstract class StartedCommand extends Command {
  static override baseFlags = globalFlags

  protected client!: Client
  protected output!: Output
  protected profile!: Profile
  protected session!: Session
  #exitCode: number = exit.ok
  /** Aborts when the person presses Ctrl-C. */
  protected signal!: AbortSignal
  #progress: Progress = silent
  /** A profile that is named and is not there is made by this command. */
  protected readonly makesProfile: boolean = false
  /** The person is asked about files of the working directory that are not trusted, or told of them. */
  protected readonly mindsFolder: boolean = true
  /** What was typed may be shown again, as no flag of it takes what could be a credential. */
  protected readonly mayRepeat: boolean = true
  /** What is said when the person presses Ctrl-C now. */
  protected interruptedAs = 'interrupted'
  /** Why nothing is done that hangs on those files. */
  #refusal: Refusal | undefined
  #wait = true
  #debug = false
  /** Errors are told as the API does; `--jq` alone is typed by who reads them. */
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

  /** Sets the status that the command ends with. */
  protected set exitCode(status: number) {
    this.#exitCode = status
    this.io.setExitStatus(status)
  }

  override async init(): Promise<void> {
    const { signal, stop } = interruption(this.io.signals)
    this.signal = signal
    this.#stopListening = stop
    this.#jsonErrors = this.argv.includes('--json')
    this.output = this.#outputFor({ json: this.#jsonErrors }, true)
    const { flags, missing } = await this.#parsed()
    const filter = flags.jq === undefined ? undefined : await jqFilter(flags.jq, this.io.signals)
    this.#wait = !flags['no-wait']
    this.#debug = flags.debug
    const named = {
      profile: flags.profile,
      url: flags.url,
      local: flags.local,
      // Some commands have a flag of this name for the credential of what they make.
      credential: Object.keys({ ...this.ctor.flags }).includes('credential') ? undefined : flags.credential,
      workspace: flags.workspace,
      dataDir: flags['data-dir'],
      config: flags.config,
      insecureHttp: flags['insecure-http'],
      asOperator: flags['as-operator'],
      mayBeNew: this.makesProfile,
    }
    this.profile = readProfile(named, this.io)
    this.output = this.#outputFor(
      { ...flags, filter, again: again(flags) },
      this.profile.colour && !flags['no-color'],
    )
    this.profile = await this.#profileHere(named)
    hideCredential(this.io.env)
    const { stderr, env, clock } = this.io
    if (stderr.isTTY && !isCi(env) && !flags.quiet)
      this.#progress = terminalProgress(sinkFor(stderr, env), clock)
    this.talkTo(this.profile, this.#refusal)
    for (const argument of missing) {
      const value = await this.given(argument, flags as NarrowingFlags)
      this.argv.push(...(this.argv.includes('--') ? [value] : ['--', value]))
    }
  }

  /** The profile that the files of the working directory leave, which says where it is another than the one in use. */
  async #profileHere(flags: Parameters<typeof readProfile>[0]): Promise<Profile> {
    const files = filesHere(this.io.cwd)
    if (!files) return this.profile
    const { folderSays } = await import('../folder/decide.ts')
    const { profile, output } = this
    const { says, refusal } = await folderSays(files, {
      profile,
      clock: this.io.clock,
      isCi: isCi(this.io.env),
      note: line => {
        if (this.mindsFolder) output.note(line)
      },
      warn: line => output.warn(line),
      agree:
        this.mindsFolder && this.canAsk
          ? question => person.agree(this.io, question, this.signal, false)
          : undefined,
    })
    this.#refusal = refusal
    // A command that looks at no runtime may be the one that makes the profile.
    const mayBeNew = flags.mayBeNew || !this.mindsFolder
    const meant = readProfile({ ...flags, mayBeNew }, this.io, says)
    if (meant.nameFrom === '.wb.yaml' && this.mindsFolder)
      output.warn(`  profile ${meant.name}, which .wb.yaml names`)
    return meant
  }

  /**
   * Stop where the files of the working directory would say how this goes on, and are not trusted; for what looks at
   * the configuration itself, as whoever asks the runtime is stopped there.
   *
   * @throws UsageError, validation_error
   */
  protected requireFolder(): void {
    if (this.#refusal) throw this.#refusal.error
  }

  /** Be connected to the runtime of a profile from now on; without a refusal, whatever lies in the working directory. */
  protected talkTo(profile: Profile, refusal?: Refusal): void {
    this.profile = profile
    this.session = new Session(profile, this.io, this.output, this.#debug, this.signal, refusal)
    this.client = this.session.client
  }

  /** The same of the runtime at an address that was typed behind the command. */
  protected talkToUrl(address: string): void {
    const url = runtimeAddress(address, 'URL')
    if (this.profile.local) throw localConflict('URL')
    this.talkTo({ ...this.profile, url, urlFrom: '--url' })
  }

  /** The flags, and the arguments that are missing, where somebody is there to give them. */
  async #parsed() {
    const command = this.ctor as unknown as typeof StartedCommand
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

  /** Parses the command line. A missing argument is not read from stdin. */
  protected override parse<F extends Values, B extends Values, A extends Values>(
    options: Input<F, B, A>,
    argv = this.argv,
  ): Promise<ParserOutput<F, B, A>> {
    const { flags, baseFlags, strict } = options
    const args = Object.fromEntries(
      Object.entries(options.args ?? {}).map(([name, arg]) => [name, { ...arg, ignoreStdin: true }]),
    ) as ArgInput<A>
    return super.parse({ args, flags, baseFlags, strict }, argv)
  }

  #outputFor(
    flags: Pick<OutputOptions, 'json' | 'filter' | 'again'> & { quiet?: boolean },
    colour: boolean,
  ): Output {
    const { stdout, stderr, env, clock } = this.io
    return new Output({
      stdout: sinkFor(stdout, env),
      stderr: sinkFor(stderr, env),
      json: flags.json,
      filter: flags.filter,
      quiet: flags.quiet ?? false,
      again: flags.again,
      colour,
      now: clock.now,
    })
  }

  /** What the person gives for an argument that is missing. */
  protected abstract given(argument: MissingArgument, flags: NarrowingFlags): Promise<string>

  /** What is going on, while something is. */
  protected get progress(): Progress {
    return this.#progress
  }

  /** True when somebody is there to answer a question. */
  protected get canAsk(): boolean {
    const { stdin, stderr, env } = this.io
    return stdin.isTTY === true && stderr.isTTY === true && !isCi(env) && !this.output.json
  }

  /** Show that something is waited for; resolves as `work` does. */
  protected async waitFor<T>(label: string, work: Promise<T>): Promise<T> {
    this.progress.spin(label)
    try {
      return await work
    } finally {
      this.progress.end()
    }
  }

  /** The command as it is typed. */
  protected get spoken(): string {
    return `wb ${this.id?.replaceAll(':', ' ')}`
  }

  get #flags() {
    const { flags, baseFlags } = this.ctor
    return { ...baseFlags, ...flags }
  }

  override async catch(error: Error): Promise<void> {
    this.progress.end()
    const isInterrupted = error instanceof Interrupted || (this.signal.aborted && error.name === 'AbortError')
    const ended = isInterrupted ? new Interrupted(this.interruptedAs) : error
    this.exitCode = exitStatus(ended)
    const report = reportOf(ended)
    const { spoken, argv, mayRepeat, profile, session } = this
    const failed = { typed: { spoken, argv, mayRepeat }, flags: Object.keys(this.#flags), profile, session }
    report.next = await nextLines(ended, report, failed)
    if (this.#jsonErrors) this.output.trace(reportJson(report))
    else for (const line of reportLines(report, this.output.errorStyle)) this.output.warn(line)
    if (this.#debug) this.output.trace(details(error))
  }

  override async finally(error: Error | undefined): Promise<void> {
    try {
      const wait = this.#wait && !error
      const left = await this.session?.end({ wait, signal: this.signal, progress: this.progress })
      if (left) this.output.note(`  ${counted(left, 'task')} left to the next command or wb serve`)
    } catch (ending) {
      if (!error) await this.catch(ending as Error)
    } finally {
      this.#stopListening()
    }
  }
}

/** A stream in the signs that its terminal takes. */
function sinkFor(stream: NodeJS.WriteStream, environment: Environment): Sink {
  return stream.isTTY && !takesUtf8(environment) ? asciiSink(stream) : stream
}

function details(error: Error): string {
  const facts = 'facts' in error ? `\n${JSON.stringify(error.facts)}` : ''
  const cause = error.cause instanceof Error ? `\ncaused by ${error.cause.stack}` : ''
  return `${error.stack}${facts}${cause}`
}
