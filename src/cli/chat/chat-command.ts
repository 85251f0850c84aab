import { writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import * as Flags from '@oclif/core/flags'
import type { Agent } from '../../contract/agents.ts'
import type { TurnEvent } from '../../contract/chat.ts'
import { WbCommand } from '../command/command.ts'
import { readAll } from '../connection/request-body.ts'
import { isCi, supportsUtf8 } from '../environment.ts'
import { UsageError } from '../errors.ts'
import { conversationName, findConversation } from '../find/conversation.ts'
import { listMcpServers } from '../find/mcp-server.ts'
import { asciiTerminal } from '../terminal/charset.ts'
import { findClipboard } from '../terminal/clipboard.ts'
import { plainLine } from '../terminal/terminal-text.ts'
import { unquotePath } from '../terminal/unquote-path.ts'
import { AgentConversation } from './agent-conversation.ts'
import type { AskOptions, ChatInterfaces, ChatOptions, ChatSubject } from './chat-interfaces.ts'
import { finishNote } from './finish-note.ts'
import { readImage, readImages } from './images.ts'
import { withModelSetup } from './model-setup.ts'
import type { OutgoingMessage } from './port.ts'
import {
  errorFromStreamEvent,
  failedAnswerError,
  printAnswer,
  unfinishedAnswerError,
} from './print-answer.ts'
import { readAttachment } from './read-attachment.ts'
import { resolveAgent } from './resolve-agent.ts'
import { isMcpTool, toolDisplayName } from './tool-name.ts'
import { askApproval, withApprovals } from './with-approvals.ts'

export const chatFlags = {
  conversation: Flags.string({ summary: 'title or ID of the conversation to continue', helpValue: 'TITLE' }),
  continue: Flags.boolean({
    char: 'c',
    summary: 'continue the newest conversation',
    exclusive: ['conversation'],
  }),
  stream: Flags.boolean({
    allowNo: true,
    default: true,
    summary: 'stream the answer; --no-stream prints one JSON object with the question and the answer',
  }),
}

export const screenReaderFlag = Flags.boolean({
  summary: 'print plain lines for a screen reader, and never redraw them',
})

interface ChatRequest {
  readonly agent?: string
  readonly question?: string
  /** Paths of images to send with the question. */
  readonly images?: readonly string[]
  /** Paths of files to attach. */
  readonly attach?: readonly string[]
  readonly flags: { readonly conversation?: string; readonly continue?: boolean; readonly stream: boolean }
}

interface ChatTarget {
  readonly agent: Agent
  readonly chat: AgentConversation
  readonly conversation: { readonly id: string; readonly name: string } | undefined
}

/** A command that sends questions to an agent. */
export abstract class ChatCommand extends WbCommand {
  /**
   * Opens a chat in a terminal. Without a terminal, or with `--no-stream`, answers one question from the arguments
   * or stdin.
   */
  protected async chat(
    request: ChatRequest,
    isForScreenReader: boolean,
    loadInterfaces: () => Promise<ChatInterfaces>,
  ): Promise<void> {
    if (!this.isTerminalChat || !request.flags.stream) return this.answer(request, loadInterfaces)
    const target = await this.waitFor('loading', this.resolveTarget(request))
    const options = await this.waitFor('loading', this.options(target, request.question))
    const { chatInTerminal, chatInLines } = await loadInterfaces()
    await (isForScreenReader ? chatInLines : chatInTerminal)(options)
    const { conversationId } = target.chat
    if (conversationId) this.output.note(`  ${this.commandName} --conversation ${conversationId}`)
  }

  /** Answers one question. */
  protected async answer(request: ChatRequest, loadInterfaces: () => Promise<ChatInterfaces>): Promise<void> {
    const images = await readImages(request.images ?? [], this.io.cwd)
    const question = await this.readQuestion(request.question)
    const message: OutgoingMessage = { content: question, ...(images.length > 0 && { images }) }
    const files = await Promise.all((request.attach ?? []).map(path => readAttachment(path, this.io.cwd)))
    const target = await this.waitFor('loading', this.resolveTarget(request))
    if (files.length > 0) await this.waitFor('attaching', target.chat.attachFiles(files))
    const { output } = this
    if (!request.flags.stream || output.json) {
      const printing = request.flags.stream
        ? this.printEvents(target, message)
        : this.printMessagePair(target, message)
      return printing.catch(error => {
        throw withModelSetup(error, target.agent.name)
      })
    }
    if (output.interactive && !isCi(this.io.env)) return this.showAnswer(target, message, loadInterfaces)
    await printAnswer({
      question,
      events: this.streamTurn(target, message),
      findPassages: () => target.chat.findPassages(question),
      agent: target.agent.name,
      output,
      signal: this.signal,
      write: text => this.io.stdout.write(text),
    })
  }

  /** Shows one answer in a terminal, in the same layout as a chat. */
  private async showAnswer(
    target: ChatTarget,
    message: OutgoingMessage,
    loadInterfaces: () => Promise<ChatInterfaces>,
  ): Promise<void> {
    const { chat } = target
    const options = await this.options(target, message.content)
    const port: AskOptions['port'] = {
      send: ({ content }) => this.streamTurn(target, { ...message, content }),
      findPassages: question => chat.findPassages(question),
      usedPassages: message => chat.usedPassages(message),
    }
    const { askInTerminal } = await loadInterfaces()
    this.progress.spin('waiting for the answer')
    const write = (text: string) => {
      this.progress.end()
      options.write(text)
    }
    await askInTerminal({ ...options, port, write })
  }

  /** Sends a question. In a terminal, asks the user about tool calls that need an approval. */
  private streamTurn({ agent, chat }: ChatTarget, message: OutgoingMessage): AsyncGenerator<TurnEvent> {
    if (!this.canAsk) return chat.sendWithoutApprovals(message, this.signal)
    return withApprovals({
      send: closeSignal => chat.sendWithApprovals(message, AbortSignal.any([this.signal, closeSignal])),
      ask: async ({ toolCall }, expirySignal) => {
        const servers = await this.serverLabels(agent)
        const call = { ...toolCall, name: toolDisplayName(toolCall.name, servers) }
        this.progress.end()
        return askApproval(call, agent.name, { io: this.io, output: this.output }, expirySignal)
      },
      decide: (approvalId, decision) => chat.decide(approvalId, decision),
    })
  }

  private async printMessagePair({ chat }: ChatTarget, message: OutgoingMessage): Promise<void> {
    const pair = await this.waitFor('waiting for the answer', chat.sendAndWait(message))
    this.output.value(pair)
    const { finish_reason: finishReason, interrupted } = pair.assistant.metadata
    if (finishReason === 'error' || interrupted) throw failedAnswerError(pair.assistant)
    const note = finishNote(pair.assistant)
    if (note) this.output.note(`  ${note}`)
  }

  private async printEvents({ chat }: ChatTarget, message: OutgoingMessage): Promise<void> {
    for await (const event of chat.sendWithoutApprovals(message, this.signal)) {
      this.output.line(event)
      if (event.event === 'done') return
      if (event.event === 'error') throw failedAnswerError(event.data)
      if (event.event === 'stream-error') throw errorFromStreamEvent(event.data)
    }
    throw unfinishedAnswerError(this.signal)
  }

  private get isTerminalChat(): boolean {
    return this.output.interactive && this.canAsk
  }

  private async readQuestion(argument: string | undefined): Promise<string> {
    if (argument !== undefined) return argument
    const missingError = new UsageError('QUESTION is missing')
    if (this.io.stdin.isTTY) throw missingError
    const text = (await readAll(this.io.stdin)).trim()
    if (text === '') throw missingError
    return text
  }

  /** Resolves the agent and the conversation. */
  private async resolveTarget({ agent: nameOrId, flags }: ChatRequest): Promise<ChatTarget> {
    const { resolveContext, client, signal, output } = this
    if (flags.conversation !== undefined) {
      const conversation = await findConversation(resolveContext, flags.conversation)
      const { agent } = await resolveAgent(resolveContext, conversation.agentId)
      const chat = new AgentConversation(client, agent, signal)
      chat.switchConversation(conversation.conversationId)
      return {
        agent,
        chat,
        conversation: { id: conversation.conversationId, name: conversationName(conversation) },
      }
    }
    const { agent, isAssumed } = await resolveAgent(resolveContext, nameOrId)
    if (isAssumed)
      this.progress.above(() =>
        output.note(`  using agent ${plainLine(agent.name)}; wb agents list shows the others`),
      )
    const chat = new AgentConversation(client, agent, signal)
    const newest = flags.continue ? await chat.newestConversation() : undefined
    if (!newest) return { agent, chat, conversation: undefined }
    chat.switchConversation(newest.conversationId)
    return { agent, chat, conversation: { id: newest.conversationId, name: conversationName(newest) } }
  }

  private async options({ agent, chat, conversation }: ChatTarget, question?: string): Promise<ChatOptions> {
    const { io } = this
    const stdout = supportsUtf8(io.env) ? io.stdout : asciiTerminal(io.stdout)
    const write = (text: string) => void stdout.write(text)
    return {
      port: chat,
      machine: {
        copy: findClipboard(io, write),
        save: (path, text) => saveNewFile(resolve(io.cwd, path), path, text),
        readImage: path => readImage(unquotePath(io.env, path), io.cwd),
        readFile: path => readAttachment(unquotePath(io.env, path), io.cwd),
      },
      clock: io.clock,
      terminal: { stdin: io.stdin, stdout, signals: io.signals },
      subject: await this.describeSubject(agent, chat),
      hasColors: this.output.style.dim('') !== '',
      conversation,
      question,
      signal: this.signal,
      write,
    }
  }

  private async describeSubject(agent: Agent, chat: AgentConversation): Promise<ChatSubject> {
    const [knowledgeBases, servers] = await Promise.all([
      chat.knowledgeBasesInUse(),
      this.serverLabels(agent),
    ])
    return { agent: plainLine(agent.name), knowledgeBases: knowledgeBases.map(plainLine), servers }
  }

  /** Returns the labels of the workspace's MCP servers by ID; empty if the agent does not use MCP tools. */
  private async serverLabels({ workspaceId, toolIds }: Agent): Promise<ChatSubject['servers']> {
    if (!toolIds.some(isMcpTool)) return {}
    const servers = await listMcpServers(this.client, workspaceId)
    return Object.fromEntries(servers.map(({ mcpServerId, label }) => [mcpServerId, label]))
  }
}

const reasonBySystemCode: Readonly<Record<string, string>> = {
  ENOENT: 'its folder does not exist',
  EACCES: 'permission denied',
  EISDIR: 'it is a folder',
}

async function saveNewFile(file: string, typedPath: string, text: string): Promise<void> {
  try {
    await writeFile(file, text, { flag: 'wx' })
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'EEXIST') throw new UsageError(`"${typedPath}" already exists; choose another file name`)
    const reason = reasonBySystemCode[String(code)]
    if (reason) throw new UsageError(`"${typedPath}" cannot be written: ${reason}`)
    throw error
  }
}
