import { isUnencryptedRemote } from '../../base/loopback.ts'
import { openLink } from '../connection/browser.ts'
import { hasBrowser } from '../environment.ts'
import type { Io } from '../io.ts'
import { findClipboardProgram } from '../terminal/clipboard.ts'
import type { Output } from '../terminal/output.ts'
import type { Progress } from '../terminal/progress.ts'
import { plainLine } from '../terminal/terminal-text.ts'
import type { DeviceSignIn } from './device-login.ts'
import { listenForEnter } from './listen-for-enter.ts'

export interface DeviceScreenDependencies {
  readonly output: Output
  readonly progress: Progress
  readonly io: Io
  /** True if stdin is a terminal. */
  readonly canAsk: boolean
}

const countdownStepMs = 1_000

/** Shows the instructions of a device sign-in: the address, the code, and the remaining time. */
export class DeviceScreen {
  #problem: string | undefined
  #cleanups: (() => void)[] = []

  constructor(
    private readonly signIn: DeviceSignIn,
    private readonly deps: DeviceScreenDependencies,
  ) {}

  show(): void {
    const { output, canAsk } = this.deps
    const { userCode, verificationUri } = this.signIn
    const { strong } = output.errorStyle
    output.warn('')
    output.warn(`    open   ${strong(plainLine(verificationUri))}`)
    output.warn(`    enter  ${strong(plainLine(userCode))}`)
    output.warn('')
    if (canAsk) this.#listenForEnter()
    this.#countDown()
  }

  /** Shows a problem in the progress line. `undefined` removes it. */
  showProblem(reason: string | undefined): void {
    this.#problem = reason
  }

  end(): void {
    for (const stop of this.#cleanups.splice(0)) stop()
    this.deps.progress.end()
  }

  /** When the user presses Enter, copies the code and opens a browser, if this machine supports it. */
  #listenForEnter(): void {
    const { output, io } = this.deps
    const [copy, url] = [findClipboardProgram(io), hasBrowser(io.env) ? this.#browserUrl() : undefined]
    const actions = [copy && 'copy the code', url && 'open the browser'].filter(Boolean)
    if (actions.length > 0) output.warn(`  Press Enter to ${actions.join(' and ')}`)
    // Needed even without actions. Otherwise, the terminal would show what the user types, and pass it to the shell.
    this.#cleanups.push(listenForEnter(io, () => void this.#copyAndOpen(copy, url)))
  }

  async #copyAndOpen(copy: ReturnType<typeof findClipboardProgram>, url: string | undefined): Promise<void> {
    const { output, progress, io } = this.deps
    const print = (line: string) => progress.above(() => output.warn(line))
    try {
      await copy?.(plainLine(this.signIn.userCode))
      if (copy) print('  ✓ copied the code to the clipboard')
    } catch (error) {
      print(`  ! the code was not copied: ${(error as Error).message}`)
    }
    if (url === undefined) return
    print((await openLink(url, io)) ? '  ✓ opened the browser' : '  ! no browser was found')
  }

  /**
   * Returns the address to open: the one that includes the code, if the provider returned one with the same origin.
   * Returns undefined if the address is not HTTP(S), or uses unencrypted HTTP to another machine.
   */
  #browserUrl(): string | undefined {
    const { verificationUriComplete: complete, verificationUri } = this.signIn
    const url = URL.canParse(verificationUri) ? new URL(verificationUri) : undefined
    if (!url || !/^https?:$/.test(url.protocol) || isUnencryptedRemote(url)) return undefined
    const hasSameOrigin =
      complete !== undefined && URL.canParse(complete) && new URL(complete).origin === url.origin
    return hasSameOrigin ? complete : verificationUri
  }

  #countDown(): void {
    const {
      progress,
      io: { clock },
    } = this.deps
    let cancel = () => {}
    const draw = () => {
      const time = formatCountdown(this.signIn.expiresAt - clock.now())
      progress.spin(
        this.#problem === undefined
          ? `waiting for your approval, ${time} left`
          : `${plainLine(this.#problem)}; trying again, ${time} left`,
      )
      cancel = clock.after(countdownStepMs, draw)
    }
    draw()
    this.#cleanups.push(() => cancel())
  }
}

/** Formats a duration as minutes and seconds, such as `4:05`. */
function formatCountdown(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / 1_000))
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}
