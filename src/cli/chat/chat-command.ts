import { writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import * as Flags from '@oclif/core/flags'
import type { Agent } from '../../contract/agents.ts'
import type { TurnEvent } from '../../contract/chat.ts'
import { WbCommand } from '../command/command.ts'
import { readAll } from '../connection/request-body.ts'
import { isCi, takesUtf8 } from '../environment.ts'
import { UsageError } from '../errors.ts'
import { conversationName, findConversation } from '../find/conversation.ts'
import { listMcpServers } from '../find/mcp-server.ts'
import { asciiTerminal } from '../terminal/charset.ts'
import { clipboardOr } from '../terminal/clipboard.ts'
import { plainLine } from '../terminal/terminal-text.ts'
import { unquotePath } from '../terminal/unquote-path.ts'
import { AgentConversation } from './agent-conversation.ts'
import { finishNote } from './finish-note.ts'
import { readImage, readImages } from './images.ts'
import type { AskOptions, ChatAbout, ChatInterfaces, ChatOptions } from './interface.ts'
import { withModelSetup } from './no-model.ts'
import type { OutgoingMessage } from './port.ts'
import { errorOfEvent, failedAnswer, printAnswer, unfinishedAnswer } from './print-answer.ts'
import { readAttachment } from './read-attachment.ts'
import { resolveAgent } from './resolve-agent.ts'
import { isMcpTool, toolName } from './tool-name.ts'
import { askApproval, withApprovals } from './with-approvals.ts'

export const chatFlags = {
  conversation: Flags.string({ summary: 'continue this conversation, by title or ID', helpValue: 'TITLE' }),
  continue: Flags.boolean({
    char: 'c',
    summary: 'continue the newest conversation',
    exclusive: ['conversation'],
  }),
  stream: Flags.boolean({
    allowNo: true,
    default: true,
    summary: 'stream the answer; --no-stream prints one JSON object with question and answer',
  }),
}

export const screenReaderFlag = Flags.boolean({ summary: 'print plain lines that are never redrawn' })

interface Wanted {
  readonly agent?: string
  readonly question?: string
  /** Paths of images to send with the question. */
  readonly images?: readonly string[]
  /** Paths of files to attach. */
  readonly attach?: readonly string[]
  readonly flags: { readonly conversation?: string; readonly continue?: boolean; readonly stream: boolean }
}

interface Meeting {
  readonly agent: Agent
  readonly talk: AgentConversation
  readonly conversation: { readonly id: string; readonly name: string } | undefined
}

/** A command that sends questions to an agent. */
export abstract class ChatCommand extends WbCommand {
  /** Opens a chat in a terminal. Without a terminal, answers one question from the arguments or stdin. */
  protected async chat(
    wanted: Wanted,
    isReadOut: boolean,
    fronts: () => Promise<ChatInterfaces>,
  ): Promise<void> {
    if (!this.isScreen || !wanted.flags.stream) return this.answer(wanted, fronts)
    const meeting = await this.waitFor('looking', this.meet(wanted))
    const options = await this.waitFor('looking', this.options(meeting, wanted.question))
    const { chatInTerminal, chatInLines } = await fronts()
    await (isReadOut ? chatInLines : chatInTerminal)(options)
    const { conversationId } = meeting.talk
    if (conversationId) this.output.note(`  ${this.commandName} --conversation ${conversationId}`)
  }

  /** Answers one question. */
  protected async answer(wanted: Wanted, fronts: () => Promise<ChatInterfaces>): Promise<void> {
    const images = await readImages(wanted.images ?? [], this.io.cwd)
    const question = await this.questionOf(wanted.question)
    const say: OutgoingMessage = { content: question, ...(images.length > 0 && { images }) }
    const files = await Promise.all((wanted.attach ?? []).map(path => readAttachment(path, this.io.cwd)))
    const meeting = await this.waitFor('looking', this.meet(wanted))
    if (files.length > 0) await this.waitFor('attaching', meeting.talk.attachFiles(files))
    const { output } = this
    if (!wanted.flags.stream || output.json) {
      const told = wanted.flags.stream ? this.tellEvents(meeting, say) : this.tellWhole(meeting, say)
      return told.catch(error => {
        throw withModelSetup(error, meeting.agent.name)
      })
    }
    if (output.interactive && !isCi(this.io.env)) return this.show(meeting, say, fronts)
    await printAnswer({
      question,
      events: this.turn(meeting, say),
      find: () => meeting.talk.find(question),
      agent: meeting.agent.name,
      output,
      signal: this.signal,
      write: text => this.io.stdout.write(text),
    })
  }

  /** Shows one answer in a terminal, as a chat does. */
  private async show(
    meeting: Meeting,
    say: OutgoingMessage,
    fronts: () => Promise<ChatInterfaces>,
  ): Promise<void> {
    const { talk } = meeting
    const options = await this.options(meeting, say.content)
    const port: AskOptions['port'] = {
      send: ({ content }) => this.turn(meeting, { ...say, content }),
      find: asked => talk.find(asked),
      usedPassages: message => talk.usedPassages(message),
    }
    const { askInTerminal } = await fronts()
    this.progress.spin('waiting for the answer')
    const write = (text: string) => {
      this.progress.end()
      options.write(text)
    }
    await askInTerminal({ ...options, port, write })
  }

  /** Sends a question. In a terminal, asks the user about tool calls that need an approval. */
  private turn({ agent, talk }: Meeting, say: OutgoingMessage): AsyncGenerator<TurnEvent> {
    if (!this.canAsk) return talk.sendUnasked(say, this.signal)
    return withApprovals({
      send: leaving => talk.sendAttended(say, AbortSignal.any([this.signal, leaving])),
      ask: async ({ toolCall }, late) => {
        const servers = await this.servers(agent)
        const call = { ...toolCall, name: toolName(toolCall.name, servers) }
        this.progress.end()
        return askApproval(call, agent.name, { io: this.io, output: this.output }, late)
      },
      decide: (approvalId, decision) => talk.decide(approvalId, decision),
    })
  }

  private async tellWhole({ talk }: Meeting, say: OutgoingMessage): Promise<void> {
    const pair = await this.waitFor('waiting for the answer', talk.sendWhole(say))
    this.output.value(pair)
    const { finish_reason: finishReason, interrupted } = pair.assistant.metadata
    if (finishReason === 'error' || interrupted) throw failedAnswer(pair.assistant)
    const early = finishNote(pair.assistant)
    if (early) this.output.note(`  ${early}`)
  }

  private async tellEvents({ talk }: Meeting, say: OutgoingMessage): Promise<void> {
    for await (const event of talk.sendUnasked(say, this.signal)) {
      this.output.line(event)
      if (event.event === 'done') return
      if (event.event === 'error') throw failedAnswer(event.data)
      if (event.event === 'stream-error') throw errorOfEvent(event.data)
    }
    throw unfinishedAnswer(this.signal)
  }

  private get isScreen(): boolean {
    return this.output.interactive && this.canAsk
  }

  private async questionOf(typed: string | undefined): Promise<string> {
    if (typed !== undefined) return typed
    const missing = new UsageError('QUESTION is missing: question, in words or a sentence')
    if (this.io.stdin.isTTY) throw missing
    const text = (await readAll(this.io.stdin)).trim()
    if (text === '') throw missing
    return text
  }

  /** Resolves the agent and the conversation. */
  private async meet({ agent: wanted, flags }: Wanted): Promise<Meeting> {
    const { resolveContext, client, signal, output } = this
    if (flags.conversation !== undefined) {
      const found = await findConversation(resolveContext, flags.conversation)
      const { agent } = await resolveAgent(resolveContext, found.agentId)
      const talk = new AgentConversation(client, agent, signal)
      talk.goOn(found.conversationId)
      return { agent, talk, conversation: { id: found.conversationId, name: conversationName(found) } }
    }
    const { agent, isAssumed } = await resolveAgent(resolveContext, wanted)
    if (isAssumed)
      this.progress.above(() =>
        output.note(`  ${plainLine(agent.name)} answers; wb agents list shows the others`),
      )
    const talk = new AgentConversation(client, agent, signal)
    const newest = flags.continue ? await talk.newest() : undefined
    if (!newest) return { agent, talk, conversation: undefined }
    talk.goOn(newest.conversationId)
    return { agent, talk, conversation: { id: newest.conversationId, name: conversationName(newest) } }
  }

  private async options({ agent, talk, conversation }: Meeting, question?: string): Promise<ChatOptions> {
    const { io } = this
    const stdout = takesUtf8(io.env) ? io.stdout : asciiTerminal(io.stdout)
    const write = (text: string) => void stdout.write(text)
    return {
      port: talk,
      machine: {
        copy: clipboardOr(io, write),
        save: (path, text) => saveNew(resolve(io.cwd, path), path, text),
        readImage: path => readImage(unquotePath(io.env, path), io.cwd),
        readFile: path => readAttachment(unquotePath(io.env, path), io.cwd),
      },
      clock: io.clock,
      terminal: { stdin: io.stdin, stdout },
      about: await this.about(agent, talk),
      hasColors: this.output.style.dim('') !== '',
      conversation,
      question,
      signal: this.signal,
      write,
    }
  }

  private async about(agent: Agent, talk: AgentConversation): Promise<ChatAbout> {
    const [inUse, servers] = await Promise.all([talk.knowledgeBasesInUse(), this.servers(agent)])
    return { agent: plainLine(agent.name), knowledgeBases: inUse.map(plainLine), servers }
  }

  /** Returns the labels of the MCP servers by ID; empty if the agent uses no tool of a server. */
  private async servers({ workspaceId, toolIds }: Agent): Promise<ChatAbout['servers']> {
    if (!toolIds.some(isMcpTool)) return {}
    const servers = await listMcpServers(this.client, workspaceId)
    return Object.fromEntries(servers.map(({ mcpServerId, label }) => [mcpServerId, label]))
  }
}

const unwritable: Readonly<Record<string, string>> = {
  ENOENT: 'its folder does not exist',
  EACCES: 'permission denied',
  EISDIR: 'it is a folder',
}

async function saveNew(file: string, path: string, text: string): Promise<void> {
  try {
    await writeFile(file, text, { flag: 'wx' })
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'EEXIST') throw new UsageError(`"${path}" exists already; name another file`)
    const why = unwritable[String(code)]
    if (why) throw new UsageError(`"${path}" cannot be written: ${why}`)
    throw error
  }
}
