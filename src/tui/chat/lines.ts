import { createInterface } from 'node:readline'
import type { FrontOptions } from '../../cli/chat/front.ts'
import { namedImageLine } from '../../cli/chat/images.ts'
import type { NamedImage } from '../../cli/chat/port.ts'
import { plainLine } from '../../cli/terminal/terminal-text.ts'
import { Chat } from './effects.ts'
import { spokenLines, spokenPanel, spokenQuestion } from './spoken.ts'
import { start } from './state.ts'
import type { Printed } from './types.ts'

/** Speak with an agent in plain lines, which nothing is drawn over, until the person leaves. */
export async function chatInLines(options: FrontOptions): Promise<void> {
  const { port, desk, clock, about, conversation, question, signal, write } = options
  const lines = createInterface({
    input: options.terminal.stdin,
    output: options.terminal.stdout,
    terminal: true,
  })
  let end = () => {}
  const ended = new Promise<void>(done => {
    end = done
  })
  let typed = question
  let isAway = false
  let isReconnecting = false
  let isOpen = false
  let work: string | undefined
  let images: readonly NamedImage[] = []
  let asked: string | undefined
  const tell = (said: readonly string[]) => {
    for (const line of said) write(`${line}\n`)
  }
  const chat = new Chat(start(about, { columns: 80, rows: 24 }, clock.now()), {
    port,
    desk,
    clock,
    onPrint(printed: Printed) {
      // Who typed it has heard it.
      if (printed.kind !== 'you' || printed.text !== typed) tell(spokenLines(printed, about.agent))
    },
    onChange({ type }) {
      const { panel, turn, fileTask, notice, away } = chat.state
      if (type === 'tick') return
      if (panel && !isOpen) tell(spokenPanel(panel))
      isOpen = panel !== undefined
      if (panel?.kind === 'text') chat.dispatch({ type: 'escape' })
      if (away && !isAway) tell(['The runtime is away. Trying again; your message is kept.'])
      isAway = away !== undefined
      if (turn?.isReconnecting && !isReconnecting) tell(['Reconnecting…'])
      isReconnecting = turn?.isReconnecting ?? false
      if (fileTask && fileTask !== work) tell([`${fileTask}…`])
      work = fileTask
      tell(chat.state.images.filter(image => !images.includes(image)).map(namedImageLine))
      images = chat.state.images
      const pending = turn?.pending[0]
      if (pending && pending.approvalId !== asked) tell(spokenQuestion(pending, about.agent))
      asked = pending?.approvalId
      if (notice !== '' && type !== 'turn') tell([notice])
      if ((!turn && !away && !fileTask) || pending) lines.prompt()
    },
    onRedraw() {},
    onLeave: end,
  })
  lines.setPrompt('you: ')
  lines.on('line', line => {
    typed = line
    chat.dispatch({ type: 'submitted', text: line })
  })
  lines.on('SIGINT', () => chat.dispatch({ type: 'cancel' }))
  lines.on('close', end)
  signal.addEventListener('abort', end)
  tell([`Speaking with ${plainLine(about.agent)}. /help lists what else there is.`])
  if (conversation) await chat.resume(conversation.name)
  if (question) chat.dispatch({ type: 'submitted', text: question })
  else lines.prompt()
  await ended
  await chat.close()
  lines.close()
}
