import { createInterface } from 'node:readline'
import type { ChatOptions } from '../../cli/chat/chat-interfaces.ts'
import { namedImageLine } from '../../cli/chat/images.ts'
import type { NamedImage } from '../../cli/chat/port.ts'
import { plainLine } from '../../cli/terminal/terminal-text.ts'
import { Chat } from './chat.ts'
import { screenReaderApproval, screenReaderLines, screenReaderPanel } from './screen-reader.ts'
import { startChat } from './state.ts'
import type { TranscriptPart } from './types.ts'

/** Chats with an agent in plain lines for a screen reader, until the user leaves. */
export async function chatInLines(options: ChatOptions): Promise<void> {
  const { port, machine, clock, subject, conversation, question, signal, write } = options
  const lines = createInterface({
    input: options.terminal.stdin,
    output: options.terminal.stdout,
    terminal: true,
  })
  let end = () => {}
  const ended = new Promise<void>(done => {
    end = done
  })
  let lastInput = question
  let isOutageReported = false
  let queuedCount = 0
  let isReconnecting = false
  let isPanelReported = false
  let reportedFileTask: string | undefined
  let images: readonly NamedImage[] = []
  let reportedApprovalId: string | undefined
  const report = (texts: readonly string[]) => {
    for (const line of texts) write(`${line}\n`)
  }
  const chat = new Chat(startChat(subject, { columns: 80, rows: 24 }, clock.now()), {
    port,
    machine,
    clock,
    onPrint(part: TranscriptPart) {
      // The user has just typed this question, so it is not repeated.
      if (part.kind !== 'question' || part.text !== lastInput) report(screenReaderLines(part, subject.agent))
    },
    onChange({ type }) {
      const { panel, turn, fileTask, notice, outage, queue } = chat.state
      if (type === 'tick') return
      if (panel && !isPanelReported) report(screenReaderPanel(panel))
      isPanelReported = panel !== undefined
      if (panel?.kind === 'text') chat.dispatch({ type: 'escape' })
      if (outage && !isOutageReported) report(['The runtime is unreachable. Retrying; your message is kept.'])
      isOutageReported = outage !== undefined
      if (queue.length > queuedCount) report(['Queued.'])
      queuedCount = queue.length
      if (turn?.isReconnecting && !isReconnecting) report(['Reconnecting…'])
      isReconnecting = turn?.isReconnecting ?? false
      if (fileTask && fileTask !== reportedFileTask) report([`${fileTask}…`])
      reportedFileTask = fileTask
      report(chat.state.images.filter(image => !images.includes(image)).map(namedImageLine))
      images = chat.state.images
      const pending = turn?.pendingApprovals[0]
      if (pending && pending.approvalId !== reportedApprovalId)
        report(screenReaderApproval(pending, subject.agent))
      reportedApprovalId = pending?.approvalId
      if (notice !== '' && type !== 'turn') report([notice])
      if ((!turn && !outage && !fileTask) || pending) lines.prompt()
    },
    onRedraw() {},
    onLeave: end,
  })
  lines.setPrompt('you: ')
  lines.on('line', line => {
    lastInput = line
    chat.dispatch({ type: 'submitted', text: line })
  })
  lines.on('SIGINT', () => chat.dispatch({ type: 'cancel' }))
  lines.on('close', end)
  signal.addEventListener('abort', end)
  report([`Chat with ${plainLine(subject.agent)}. /help lists the commands.`])
  if (conversation) await chat.resume(conversation.name)
  if (question) chat.dispatch({ type: 'submitted', text: question })
  else lines.prompt()
  await ended
  await chat.close()
  lines.close()
}
