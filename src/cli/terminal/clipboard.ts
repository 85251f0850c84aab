import { clipboardCommand, terminalClipboard } from '../environment.ts'
import { UsageError } from '../errors.ts'
import type { Io } from '../io.ts'
import { formatCount } from './output.ts'

/** Returns a function that copies a text with the clipboard program of this machine, or undefined. */
export function findClipboardProgram(
  io: Pick<Io, 'env' | 'copyWith'>,
): ((text: string) => Promise<void>) | undefined {
  const command = clipboardCommand(io.env)
  return command && (text => io.copyWith(command, text))
}

/** The program or terminal that copied a text. A terminal does not confirm that it has stored the text. */
export type CopiedBy = 'program' | 'terminal' | 'tmux'

/** Maximum size of a text that a terminal can copy: 100,000 bytes as base64. Terminals ignore longer texts. */
const terminalCopyBytesMax = 75_000

/**
 * Returns a function that copies a text with a program, or through the terminal (OSC 52) if there is no program or it
 * fails. Returns undefined if neither is available. The function throws UsageError if the text is too long for the
 * terminal.
 *
 * @param write  writes to the terminal
 * @see https://invisible-island.net/xterm/ctlseqs/ctlseqs.html
 */
export function findClipboard(
  io: Pick<Io, 'env' | 'copyWith'>,
  write: (text: string) => void,
): ((text: string) => Promise<CopiedBy>) | undefined {
  const [program, terminal] = [findClipboardProgram(io), terminalClipboard(io.env)]
  if (!program && !terminal) return undefined
  return async text => {
    try {
      await program?.(text)
      if (program) return 'program'
    } catch (error) {
      if (!terminal) throw error
    }
    write(clipboardSequence(text, terminal === 'tmux'))
    return terminal!
  }
}

/**
 * Returns the control sequence that sets the clipboard of a terminal. The text is encoded as base64, so it
 * cannot contain control sequences. In tmux, the sequence is sent twice: to tmux itself (`set-clipboard`), and
 * to the terminal in which tmux runs (`allow-passthrough`).
 *
 * @throws UsageError  the text is too long
 */
export function clipboardSequence(text: string, isInTmux: boolean): string {
  const bytes = Buffer.from(text)
  if (bytes.length > terminalCopyBytesMax)
    throw new UsageError(
      `the terminal can copy at most ${formatCount(terminalCopyBytesMax)} bytes, and this text has ${formatCount(bytes.length)}; /export writes it to a file`,
    )
  const sequence = `\x1b]52;c;${bytes.toString('base64')}\x07`
  return isInTmux ? `${sequence}\x1bPtmux;\x1b${sequence}\x1b\\` : sequence
}
