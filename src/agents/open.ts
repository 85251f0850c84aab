import type { AuditTrail } from '../access/audit-trail.ts'
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { ConfigEnvironment } from '../config/config-environment.ts'
import type { Config } from '../config/schema.ts'
import { firstOfFolders } from '../contract/folder-description.ts'
import type { OpenPassageCheck } from '../knowledge/passage-visibility.ts'
import type { Uploads } from '../knowledge/uploads.ts'
import type { Models } from '../models/open.ts'
import type { SentenceModel } from '../sentence-model/sentence-model.ts'
import type { Pager } from '../storage/cursor.ts'
import type { RowStore } from '../storage/rows.ts'
import type { McpSignIns } from '../workspaces/mcp-sign-ins.ts'
import { Agents } from './agents.ts'
import { Attachments } from './attachments.ts'
import { AnswerCheck } from './chat/answer-check.ts'
import type { ChatModelSource } from './chat/answering-model.ts'
import { Compactions } from './chat/compactions.ts'
import type { RetrievePassages } from './chat/grounding.ts'
import { PastImages } from './chat/past-images.ts'
import { relevantHits } from './chat/relevance.ts'
import { Turns, type TurnsDependencies } from './chat/turns.ts'
import { Conversations } from './conversations.ts'
import { Messages } from './messages.ts'
import { Completions, openAiHandlers } from './openai/completions.ts'
import {
  agentHandlers,
  attachmentHandlers,
  chatHandlers,
  conversationHandlers,
  messageHandlers,
  templateHandlers,
} from './routes.ts'
import { toSearchCaller } from './search-caller.ts'
import { AttachmentReader } from './tools/attachment-reader.ts'
import { DeclaredTools, type DeclaredToolsDependencies } from './tools/declared-tools.ts'
import { type KnowledgeReads, KnowledgeTools } from './tools/knowledge-tools.ts'
import { openNativeTools } from './tools/native-tools.ts'
import { findPassageSources, textField } from './tools/passages.ts'
import { findReadableBases } from './tools/readable-bases.ts'
import { type ListRemoteTools, RemoteTools } from './tools/remote-tools.ts'
import { ToolGate } from './tools/tool-gate.ts'
import { Toolbox } from './tools/toolbox.ts'
import { Versions } from './versions.ts'

export interface AgentDependencies extends Pick<TurnsDependencies, 'onTurnEnd'> {
  readonly rows: RowStore
  readonly pager: Pager
  readonly clock: Clock
  readonly log: Log
  readonly environment: ConfigEnvironment
  readonly audit: AuditTrail
  readonly settings: Pick<Config['chat'], 'tools' | 'systemPrompt' | 'retrievalK' | 'checkAnswers'>
  readonly listTools: ListRemoteTools
  readonly signIns: McpSignIns
  /** MCP servers that the configuration declares as commands. */
  readonly declared: DeclaredToolsDependencies['declared']
  readonly models: Pick<Models, 'callTool' | 'processes' | 'outbound' | 'fetchPublic'> & ChatModelSource
  readonly reads: KnowledgeReads
  readonly uploads: Pick<Uploads, 'readAttachment'>
  /** Checks answers; undefined if search by meaning is off. */
  readonly sentenceModel: Pick<SentenceModel, 'embed'> | undefined
}

/** Opens agents and conversations. Returns their services, and their route handlers by topic. */
export function openAgents(deps: AgentDependencies) {
  const { models, reads, sentenceModel } = deps
  const { tools: settings, systemPrompt, retrievalK, checkAnswers } = deps.settings
  const { callTool, processes, outbound, fetchPublic } = models
  const ttlMs = settings.mcp.discoveryTtlMs
  const toolbox = new Toolbox({
    ...deps,
    remote: new RemoteTools({ ...deps, callTool, ttlMs }),
    declared: new DeclaredTools({ ...deps, processes, ttlMs }),
    builtin: new KnowledgeTools(deps.reads).all(),
    extraTools: openNativeTools({ ...deps, settings, outbound, fetch: fetchPublic }),
  })
  const conversations = new Conversations(deps)
  const gate = new ToolGate(deps)
  const openPassageCheck: OpenPassageCheck = (...args) => reads.passages.open(...args)
  const compactions = new Compactions({ ...deps, openPassageCheck })
  const turnsDeps: Omit<TurnsDependencies, 'conversations' | 'answerCheck'> = {
    ...deps,
    openPassageCheck,
    gate,
    compactions,
    attachments: new AttachmentReader(deps.rows),
    pastImages: new PastImages(),
    systemPrompt,
    retrievalK,
    findTools: (agent, auth, signal) => toolbox.forAgent(agent, auth, signal),
    findBases: async (workspaceId, knowledgeBaseIds) =>
      (await findReadableBases(reads.bases, { workspaceId, knowledgeBaseIds })).bases,
    retrieve: retrieveFrom(reads),
  }
  const answerCheck =
    sentenceModel && checkAnswers ? new AnswerCheck({ ...deps, model: sentenceModel }) : undefined
  const turns = new Turns({ ...turnsDeps, conversations, answerCheck })
  return {
    conversations,
    toolbox,
    gate,
    turns,
    close: () => compactions.close(),
    handlers: {
      agentTemplates: templateHandlers(deps.rows),
      agents: agentHandlers(new Agents({ ...deps, tools: toolbox }), toolbox),
      conversations: conversationHandlers(conversations),
      messages: messageHandlers({
        openPassageCheck,
        messages: new Messages({ ...deps, conversations }),
        versions: new Versions({ ...deps, conversations }),
      }),
      attachments: attachmentHandlers({
        ...deps,
        conversations,
        attachments: new Attachments({ ...deps, conversations }),
      }),
      chat: chatHandlers(turns),
      openai: openAiHandlers(deps.rows, new Completions(turnsDeps)),
    },
  }
}

function retrieveFrom({ manySearcher, documents }: KnowledgeReads): RetrievePassages {
  return async (workspaceId, body, caller) => {
    const searchCaller = toSearchCaller(caller, caller.signal)
    const request = { ...body, includeCoverage: true, includeFolder: true }
    const result = await manySearcher.search(workspaceId, request, searchCaller)
    const hits = relevantHits(result.hits, body.text ?? '')
    const passages = await findPassageSources(documents, { workspaceId, caller }, hits)
    const folders = firstOfFolders(
      hits,
      hit => hit.folder,
      hit => hit.knowledgeBaseId,
    )
    return hits.map(({ payload }, at) => ({
      passage: passages[at]!,
      text: textField(payload?.chunkText) ?? '',
      folder: folders[at]?.description,
    }))
  }
}
