import { isUnencryptedRemote } from '../../base/loopback.ts'
import { openLink } from '../connection/browser.ts'
import { hasBrowser } from '../environment.ts'
import type { Io } from '../io.ts'
import { findClipboardProgram } from '../terminal/clipboard.ts'
import type { Output } from '../terminal/output.ts'
import type { Progress } from '../terminal/progress.ts'
import { plainLine } from '../terminal/terminal-text.ts'
import type { DeviceSignIn } from './device-login.ts'
import { listenForEnter } from './enter-key.ts'

export interface DeviceScreenParts {
  readonly output: Output
  readonly progress: Progress
  readonly io: Io
  /** True if stdin is a terminal. */
  readonly canAsk: boolean
}

const countdownStepMs = 1_000

/** Instructions during a device sign-in: address, code, and remaining time. */
export class DeviceScreen {
  #problem: string | undefined
  #cleanups: (() => void)[] = []

  constructor(
    private readonly started: DeviceSignIn,
    private readonly parts: DeviceScreenParts,
  ) {}

  show(): void {
    const { output, canAsk } = this.parts
    const { userCode, verificationUri } = this.started
    const { strong } = output.errorStyle
    output.warn('')
    output.warn(`    open   ${strong(plainLine(verificationUri))}`)
    output.warn(`    enter  ${strong(plainLine(userCode))}`)
    output.warn('')
    if (canAsk) this.#listenForEnter()
    this.#countDown()
  }

  /** Shows a problem in the progress line; undefined removes it. */
  showProblem(reason: string | undefined): void {
    this.#problem = reason
  }

  end(): void {
    for (const stop of this.#cleanups.splice(0)) stop()
    this.parts.progress.end()
  }

  /** Lets the user press Enter to copy the code and open the browser, as far as both are possible. */
  #listenForEnter(): void {
    const { output, io } = this.parts
    const [copy, url] = [findClipboardProgram(io), hasBrowser(io.env) ? this.#browserUrl() : undefined]
    const offered = [copy && 'copy the code', url && 'open the browser'].filter(Boolean)
    if (offered.length > 0) output.warn(`  Press Enter to ${offered.join(' and ')}`)
    // What is typed here without need would else stand in the screen, and in the next line of the shell.
    this.#cleanups.push(listenForEnter(io, () => void this.#copyAndOpen(copy, url)))
  }

  async #copyAndOpen(copy: ReturnType<typeof findClipboardProgram>, url: string | undefined): Promise<void> {
    const { output, progress, io } = this.parts
    const print = (line: string) => progress.above(() => output.warn(line))
    try {
      await copy?.(plainLine(this.started.userCode))
      if (copy) print('  ✓ copied the code to the clipboard')
    } catch (error) {
      print(`  ! the code was not copied: ${(error as Error).message}`)
    }
    if (url === undefined) return
    print((await openLink(url, io)) ? '  ✓ opened the browser' : '  ! no browser was found')
  }

  /**
   * Returns the address to open. Includes the code if the provider's link has the same origin. Returns
   * undefined for an unencrypted address of another machine.
   */
  #browserUrl(): string | undefined {
    const { verificationUriComplete: complete, verificationUri } = this.started
    const shown = URL.canParse(verificationUri) ? new URL(verificationUri) : undefined
    if (!shown || !/^https?:$/.test(shown.protocol) || isUnencryptedRemote(shown)) return undefined
    const isSame =
      complete !== undefined && URL.canParse(complete) && new URL(complete).origin === shown.origin
    return isSame ? complete : verificationUri
  }

  #countDown(): void {
    const {
      progress,
      io: { clock },
    } = this.parts
    let cancel = () => {}
    const draw = () => {
      const left = timeLeft(this.started.expiresAt - clock.now())
      progress.spin(
        this.#problem === undefined
          ? `waiting for your approval, ${left} left`
          : `${plainLine(this.#problem)}; trying again, ${left} left`,
      )
      cancel = clock.after(countdownStepMs, draw)
    }
    draw()
    this.#cleanups.push(() => cancel())
  }
}

/** Formats a time as minutes and seconds. */
function timeLeft(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / 1_000))
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}
