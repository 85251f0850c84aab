import { Command } from '@oclif/core/command'
import * as Flags from '@oclif/core/flags'
import { systemClock } from '../base/clock.ts'
import type { Client } from '../client/client.ts'
import { WbError } from '../contract/errors.ts'
import type { KnowledgeBase } from '../contract/knowledge.ts'
import type { Workspace } from '../contract/workspaces.ts'
import * as person from './ask.ts'
import { asciiSink } from './charset.ts'
import type { Choices, NarrowingFlags } from './choices.ts'
import { isTaken, missingValue } from './existing.ts'
import { exitStatus } from './exit.ts'
import { Interrupted, UsageError } from './faults.ts'
import type { Refusal } from './folder/decide.ts'
import { filesHere } from './folder/here.ts'
import { interruption } from './interrupt.ts'
import { type Filter, jqFilter } from './jq.ts'
import { counted, Output, type Sink } from './output.ts'
import { flagsMeant, missingArguments } from './parse-fault.ts'
import { hideCredential, isCi, type Profile, readProfile, runtimeAddress, takesUtf8 } from './profile.ts'
import { type Progress, silent, terminalProgress } from './progress.ts'
import { reportJson, reportLines, reportOf } from './report.ts'
import { type Resolving, resolveKnowledgeBase, resolveWorkspace, workspaceOrDefault } from './resolve.ts'
import { Session } from './session.ts'
import { shellWord } from './shell-word.ts'
import { loginLine } from './sign-in/credential.ts'
import { asOwner, signingIn, unreached } from './signing-in.ts'
import { take } from './take.ts'
import { plainLine } from './terminal-text.ts'

function everywhere(helpValue?: string) {
  return { helpGroup: 'GLOBAL', ...(helpValue && { helpValue }) }
}

const globalFlags = {
  workspace: Flags.string({ char: 'w', summary: 'workspace, by name or id', ...everywhere('NAME') }),
  profile: Flags.string({ summary: 'profile, by name', ...everywhere('NAME') }),
  url: Flags.string({ summary: 'address of a runtime', ...everywhere() }),
  'data-dir': Flags.string({
    summary: 'data directory of the runtime on this machine',
    ...everywhere('DIR'),
  }),
  config: Flags.string({
    summary: 'configuration file of the runtime on this machine',
    ...everywhere('FILE'),
  }),
  json: Flags.boolean({ summary: "print the API's own object", helpGroup: 'GLOBAL' }),
  jq: Flags.string({ summary: 'print what a jq expression makes of that object', ...everywhere('EXPR') }),
  quiet: Flags.boolean({ char: 'q', summary: 'print the result alone', helpGroup: 'GLOBAL' }),
  debug: Flags.boolean({ summary: 'print each request, and the details of an error', helpGroup: 'GLOBAL' }),
  'no-color': Flags.boolean({ summary: 'print without colours', helpGroup: 'GLOBAL' }),
  'no-wait': Flags.boolean({ summary: 'leave work that is due to the next process', helpGroup: 'GLOBAL' }),
  credential: Flags.option({
    options: ['key', 'login'] as const,
    summary: 'send this one where there are both',
    helpGroup: 'GLOBAL',
  })(),
  'insecure-http': Flags.boolean({
    summary: 'send a key over http:// to another machine',
    helpGroup: 'GLOBAL',
  }),
  'as-operator': Flags.boolean({
    summary: 'act as the owner of the data directory, in this process',
    helpGroup: 'GLOBAL',
  }),
}

/** Rows that a terminal shows of a list unless told otherwise. */
const screenful = 50

/** `--limit` of every list. */
export const limitFlag = Flags.integer({ min: 1, summary: 'how many at most [50 in a terminal, else all]' })
/** `--yes` of everything that deletes. */
export const yesFlag = Flags.boolean({ char: 'y', summary: 'go on without being asked' })

/**
 * The base of every command: global flags, the connection, resolving of names, output, and how a command ends.
 *
 * A command parses, calls the client, and shows.
 */
export abstract class WbCommand extends Command {
  static override baseFlags = globalFlags

  protected client!: Client
  protected output!: Output
  protected profile!: Profile
  protected session!: Session
  /** Aborts when the person presses Ctrl-C. */
  protected signal!: AbortSignal
  #progress: Progress = silent
  /** What was chosen so far, by question: nobody is asked the same twice. */
  readonly #chosen = new Map<string, string>()
  /** A profile that is named and is not there is made by this command. */
  protected readonly makesProfile: boolean = false
  /** The person is asked about files of the working directory that are not trusted, or told of them. */
  protected readonly mindsFolder: boolean = true
  /** Why nothing is done that hangs on those files. */
  #refusal: Refusal | undefined
  #wait = true
  #debug = false
  /** Errors are told as the API does; `--jq` alone is typed by who reads them. */
  #jsonErrors = false
  #stopListening = () => {}

  override async init(): Promise<void> {
    const { signal, stop } = interruption()
    this.signal = signal
    this.#stopListening = stop
    this.#jsonErrors = this.argv.includes('--json')
    this.output = this.#outputFor({ json: this.#jsonErrors }, true)
    const { flags, missing } = await this.#parsed()
    const filter = flags.jq === undefined ? undefined : await jqFilter(flags.jq)
    this.#wait = !flags['no-wait']
    this.#debug = flags.debug
    const named = {
      profile: flags.profile,
      url: flags.url,
      // Some commands have a flag of this name for the credential of what they make.
      credential: Object.keys({ ...this.ctor.flags }).includes('credential') ? undefined : flags.credential,
      workspace: flags.workspace,
      dataDir: flags['data-dir'],
      config: flags.config,
      insecureHttp: flags['insecure-http'],
      asOperator: flags['as-operator'],
      mayBeNew: this.makesProfile,
    }
    this.profile = readProfile(named)
    this.output = this.#outputFor({ ...flags, filter }, this.profile.colour && !flags['no-color'])
    this.profile = await this.#profileHere(named)
    hideCredential()
    if (process.stderr.isTTY && !isCi() && !flags.quiet)
      this.#progress = terminalProgress(sinkFor(process.stderr), systemClock)
    this.talkTo(this.profile, this.#refusal)
    for (const argument of missing) {
      const asking = { resolving: this.resolving, flags: flags as NarrowingFlags, signal: this.signal }
      const value = await missingValue(argument, asking)
      this.argv.push(...(this.argv.includes('--') ? [value] : ['--', value]))
    }
  }

  /** The profile that the files of the working directory leave, which says where it is another than the one in use. */
  async #profileHere(flags: Parameters<typeof readProfile>[0]): Promise<Profile> {
    const files = filesHere()
    if (!files) return this.profile
    const { folderSays } = await import('./folder/decide.ts')
    const { profile, output } = this
    const { says, refusal } = await folderSays(files, {
      profile,
      clock: systemClock,
      isCi: isCi(),
      note: line => {
        if (this.mindsFolder) output.note(line)
      },
      warn: line => output.warn(line),
      agree:
        this.mindsFolder && this.canAsk ? question => person.agree(question, this.signal, false) : undefined,
    })
    this.#refusal = refusal
    // A command that looks at no runtime may be the one that makes the profile.
    const mayBeNew = flags.mayBeNew || !this.mindsFolder
    const meant = readProfile({ ...flags, mayBeNew }, undefined, says)
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
    this.session = new Session(profile, this.output, this.#debug, this.signal, refusal)
    this.client = this.session.client
  }

  /** The same of the runtime at an address that was typed behind the command. */
  protected talkToUrl(address: string): void {
    const url = runtimeAddress(address, 'URL', likely => `${this.spoken} ${likely}`)
    this.talkTo({ ...this.profile, url, urlFrom: '--url' })
  }

  /** The flags, and the arguments that are missing, where somebody is there to give them. */
  async #parsed() {
    const command = this.ctor as typeof WbCommand
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

  #outputFor(flags: { json: boolean; filter?: Filter; quiet?: boolean }, colour: boolean): Output {
    return new Output({
      stdout: sinkFor(process.stdout),
      stderr: sinkFor(process.stderr),
      json: flags.json,
      filter: flags.filter,
      quiet: flags.quiet ?? false,
      colour,
      now: systemClock.now,
    })
  }

  /** What is going on, while something is. */
  protected get progress(): Progress {
    return this.#progress
  }

  /** A secret from the person, which is not shown. */
  protected askSecret(question: string): Promise<string> {
    return person.askSecret(question, this.signal)
  }

  /** True when somebody is there to answer a question. */
  protected get canAsk(): boolean {
    return process.stdin.isTTY === true && process.stderr.isTTY === true && !isCi() && !this.output.json
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

  /** A workspace by name or id, else what `--workspace`, the default, or there being one says. */
  protected workspace(nameOrId?: string): Promise<Workspace> {
    return resolveWorkspace(this.resolving, nameOrId)
  }

  /** The same; a runtime without workspaces is given one named `default`. */
  protected workspaceOrDefault(): Promise<Workspace> {
    return workspaceOrDefault(this.resolving, ({ name }) => this.output.note(`  ✓ made workspace ${name}`))
  }

  /** A knowledge base by name or id; the one of `.wb.yaml`, or the only one, when nothing is named. */
  protected knowledgeBase(nameOrId?: string): Promise<KnowledgeBase> {
    return resolveKnowledgeBase(this.resolving, nameOrId)
  }

  protected get resolving(): Resolving {
    const { client, profile, argv } = this
    const choose: Resolving['choose'] = async (question, choices) => {
      this.progress.end()
      const answer = this.#chosen.get(question) ?? (await person.choose(question, choices, this.signal))
      this.#chosen.set(question, answer)
      return answer
    }
    const typed = (...words: string[]) => [this.spoken, ...words.map(shellWord)].join(' ')
    return {
      client,
      profile,
      choose: this.canAsk ? choose : undefined,
      withBase: name => typed(name, ...argv),
      withWorkspace: name => typed(...argv, '--workspace', name),
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

  /** A line of text from the person, or a usage error that names what is missing. */
  protected async ask(question: string, missing: string): Promise<string> {
    if (!this.canAsk) throw new UsageError(missing)
    return person.ask(question, this.signal)
  }

  /**
   * What a flag says, else the person.
   *
   * @throws UsageError  neither does: names the flag
   */
  protected async want(flag: string, given: string | undefined, question: string): Promise<string> {
    return given ?? this.ask(`${question}:`, `${flag} is missing`)
  }

  /**
   * The same, of a few that are fetched when the person has to choose.
   *
   * @throws UsageError  nobody says, or there are none to choose from: names the flag
   */
  protected async wantOneOf(
    flag: string,
    given: string | undefined,
    question: string,
    choices: () => Promise<readonly { id: string; name: string }[]>,
  ): Promise<string> {
    if (given !== undefined) return given
    if (!this.canAsk) throw new UsageError(`${flag} is missing`)
    const offered = await choices()
    if (offered.length === 0) throw new UsageError(`${flag} is missing, and there is none to choose from`)
    return person.choose(question, offered, this.signal)
  }

  /**
   * @param change  what the flags say
   * @throws UsageError  nothing at all
   */
  protected requireChange(change: object): void {
    if (Object.values(change).every(value => value === undefined))
      throw new UsageError('nothing to change was named', [`${this.spoken} --help`])
  }

  /** A yes or no from the person; no where nobody is there. */
  protected async agree(question: string): Promise<boolean> {
    return this.canAsk && person.agree(question, this.signal)
  }

  /**
   * Names are not unique: whether one more is meant is asked in a terminal, and told elsewhere.
   *
   * @throws UsageError  it is not meant
   */
  protected async allowTwin(among: Choices, name: string, flags: NarrowingFlags = {}): Promise<void> {
    if (!(await isTaken(among.among(this.resolving, flags), name))) return
    const fact = `another ${among.one} is named ${plainLine(name)}`
    if (!this.canAsk) this.output.warn(`  ! ${fact}; this makes a second one`)
    else if (!(await this.agree(`${fact}; make a second one?`)))
      throw new UsageError('nothing was made', ['the same command with another name makes one of that name'])
  }

  /**
   * The first items of a list, and of how many they are.
   *
   * @param limit  what `--limit` says; without it a screenful in a terminal, everything elsewhere
   */
  protected async take<T>(items: AsyncGenerator<T>, limit?: number): Promise<{ rows: T[]; total?: string }> {
    return this.waitFor('reading', take(items, limit ?? (this.output.interactive ? screenful : Infinity)))
  }

  /**
   * Have the person type the name of what will go.
   *
   * @param what  says what goes with it: "knowledge base handbook with 1,204 documents"
   * @throws UsageError  nobody is there, and `--yes` was not given; or another name was typed
   */
  protected confirmDeletion(what: string, name: string, yes: boolean): Promise<void> {
    return this.confirm({ act: `deletes ${what}`, undone: 'nothing was deleted' }, name, yes)
  }

  /**
   * Have the person type a name before something is done that cannot be undone.
   *
   * @throws UsageError  nobody is there, and `--yes` was not given; or another name was typed
   */
  protected async confirm(
    { act, undone }: { act: string; undone: string },
    name: string,
    yes: boolean,
  ): Promise<void> {
    if (yes) return
    if (!this.canAsk) throw new UsageError(`this ${act}`, ['add --yes to go on without being asked'])
    this.output.warn(`  This ${act}.`)
    const typed = await person.askToConfirm(`Type ${name} to go on:`, this.signal)
    if (typed !== name)
      throw new UsageError(`"${typed}" is not "${name}"; ${undone}`, ['the same command asks again'])
  }

  override async catch(error: Error): Promise<void> {
    this.progress.end()
    const ended = this.signal.aborted && error.name === 'AbortError' ? new Interrupted() : error
    process.exitCode = exitStatus(ended)
    const report = reportOf(ended)
    const met = await this.session?.met()
    if (report.code === 'internal_error' && met?.kind === 'process')
      report.next = ['This is a defect of wb; run it again with --debug for the details.']
    if (isRefused(error) && met)
      report.next = signingIn(this.profile, this.session.credential.used, {
        ...met,
        ways: await this.session.ways(),
        isCi: isCi(),
        message: report.message,
      })
    if (report.kind === 'unreachable') report.next.push(...unreached(this.profile))
    if (report.kind === 'keychain') report.next.push(loginLine(this.profile, ' --insecure-storage'))
    if (report.code === 'forbidden' && met) report.next.push(...asOwner(met.kind))
    if (report.kind === 'usage' && report.next.length === 0)
      report.next.push(...flagsMeant(error, Object.keys(this.#flags)), `${this.spoken} --help`)
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
function sinkFor(stream: NodeJS.WriteStream): Sink {
  return stream.isTTY && !takesUtf8() ? asciiSink(stream) : stream
}

/** True where the runtime does not know who is calling; what this side says of a login names its own way out. */
function isRefused(error: Error): boolean {
  return error instanceof WbError && error.code === 'unauthorized' && error.facts.wireStatus === 401
}

function details(error: Error): string {
  const facts = 'facts' in error ? `\n${JSON.stringify(error.facts)}` : ''
  const cause = error.cause instanceof Error ? `\ncaused by ${error.cause.stack}` : ''
  return `${error.stack}${facts}${cause}`
}
