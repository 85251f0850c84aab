import type { Handlers } from '../access/caller.ts'
import { requireWorkspace } from '../access/require-workspace.ts'
import type { Agent, agents as agentRoutes, agentTemplates } from '../contract/agents.ts'
import type { attachments as attachmentRoutes } from '../contract/attachments.ts'
import type { chat } from '../contract/chat.ts'
import type {
  conversations as conversationRoutes,
  messages as messageRoutes,
} from '../contract/conversations.ts'
import type { OpenPassageCheck } from '../knowledge/passage-visibility.ts'
import type { Uploads } from '../knowledge/uploads.ts'
import type { RowStore } from '../storage/rows.ts'
import { builtInAgentTemplates } from '../workspaces/agent-templates.ts'
import type { Agents } from './agents.ts'
import type { Attachments } from './attachments.ts'
import type { Turns } from './chat/turns.ts'
import type { Conversations } from './conversations.ts'
import type { Messages } from './messages.ts'
import type { Toolbox } from './tools/toolbox.ts'
import type { Versions } from './versions.ts'
import { withVisiblePassages } from './visible-passages.ts'

export function templateHandlers(rows: RowStore): Handlers<typeof agentTemplates> {
  const all = { status: 200 as const, body: { items: [...builtInAgentTemplates] } }
  return {
    list: () => all,
    listIn: async ({ params }) => {
      await requireWorkspace(rows, params.workspaceId)
      return all
    },
  }
}

export function agentHandlers(agents: Agents, tools: Toolbox): Handlers<typeof agentRoutes> {
  const createdResponse = (agent: Agent, templateId?: string) => ({
    status: 201 as const,
    body: agent,
    audit: { agentId: agent.agentId, label: agent.name, ...(templateId && { templateId }) },
  })
  return {
    list: async ({ params, query }) => ({ status: 200, body: await agents.list(params.workspaceId, query) }),
    create: async ({ params, body }, { auth }) =>
      createdResponse(await agents.create(params.workspaceId, body, auth)),
    createFromTemplate: async ({ params, body: { templateId } }) =>
      createdResponse(await agents.createFromTemplate(params.workspaceId, templateId), templateId),
    show: async ({ params }) => ({ status: 200, body: await agents.get(params.workspaceId, params.agentId) }),
    update: async ({ params, body }, { auth }) => ({
      status: 200,
      body: await agents.update(params.workspaceId, params.agentId, body, auth),
    }),
    delete: async ({ params }, caller) => {
      const { name } = await agents.delete(params.workspaceId, params.agentId, caller)
      return { status: 204, body: undefined, audit: { label: name } }
    },
    tools: async ({ params }, { auth }) => ({
      status: 200,
      body: { items: await tools.available(params.workspaceId, auth) },
    }),
  }
}

export function conversationHandlers(conversations: Conversations): Handlers<typeof conversationRoutes> {
  return {
    listAll: async ({ params, query }, caller) => ({
      status: 200,
      body: await conversations.list(params, query, caller),
    }),
    list: async ({ params, query }, caller) => ({
      status: 200,
      body: await conversations.list(params, query, caller),
    }),
    create: async ({ params, body }, { auth }) => ({
      status: 201,
      body: await conversations.create(params, body, auth),
    }),
    show: async ({ params }, { auth }) => ({ status: 200, body: await conversations.get(params, auth) }),
    update: async ({ params, body }, { auth }) => ({
      status: 200,
      body: await conversations.update(params, body, auth),
    }),
    delete: async ({ params }, caller) => {
      await conversations.delete(params, caller)
      return { status: 204, body: undefined }
    },
  }
}

export function messageHandlers({
  openPassageCheck,
  messages,
  versions,
}: {
  openPassageCheck: OpenPassageCheck
  messages: Messages
  versions: Versions
}): Handlers<typeof messageRoutes> {
  return {
    list: async ({ params, query }, caller) => {
      const { items, nextCursor } = await messages.list(params, query, caller.auth)
      const check = await openPassageCheck(params.workspaceId, caller)
      const visibleItems = await Promise.all(items.map(message => withVisiblePassages(message, check)))
      return { status: 200, body: { items: visibleItems, nextCursor } }
    },
    show: async ({ params }, caller) => {
      const message = await messages.get(params, caller.auth)
      const check = await openPassageCheck(params.workspaceId, caller)
      return { status: 200, body: await withVisiblePassages(message, check) }
    },
    image: async ({ params }, { auth }) => ({
      status: 200,
      body: await messages.image(params, auth),
      headers: { 'content-disposition': 'inline', 'cache-control': 'private' },
    }),
    versions: async ({ params }, caller) => {
      const items = await versions.list(params, caller.auth)
      const check = await openPassageCheck(params.workspaceId, caller)
      const visibleItems = await Promise.all(
        items.map(async item => ({
          ...item,
          answer: item.answer && (await withVisiblePassages(item.answer, check)),
        })),
      )
      return { status: 200, body: { items: visibleItems } }
    },
    select: async ({ params }, { auth }) => ({ status: 200, body: await versions.select(params, auth) }),
  }
}

export function attachmentHandlers(deps: {
  attachments: Attachments
  conversations: Pick<Conversations, 'get'>
  uploads: Pick<Uploads, 'readAttachment'>
}): Handlers<typeof attachmentRoutes> {
  const { attachments, conversations, uploads } = deps
  return {
    list: async ({ params, query }, { auth }) => ({
      status: 200,
      body: await attachments.list(params, query, auth),
    }),
    create: async ({ params, body }, caller) => {
      const conversation = await conversations.get(params, caller.auth)
      return body.receive(async upload => {
        const content = await uploads.readAttachment(upload, params.workspaceId, caller)
        const attachment = await attachments.create(conversation, upload.file, content)
        return { status: 201, body: attachment, ignored: upload.ignored }
      })
    },
    show: async ({ params }, { auth }) => ({ status: 200, body: await attachments.get(params, auth) }),
    delete: async ({ params }, caller) => {
      await attachments.delete(params, caller)
      return { status: 204, body: undefined }
    },
  }
}

export function chatHandlers(turns: Turns): Handlers<typeof chat> {
  return {
    send: async ({ params, body }, caller) => ({ status: 201, body: await turns.send(params, body, caller) }),
    stream: async ({ params, body }, caller) => ({
      status: 200,
      events: await turns.stream(params, body, caller),
    }),
    attach: async ({ params }, caller) => ({ status: 200, events: await turns.attach(params, caller) }),
    stop: async ({ params }, { auth }) => {
      await turns.stop(params, auth)
      return { status: 204, body: undefined }
    },
    decide: async ({ params, body }, caller) => ({
      status: 200,
      body: await turns.decide(params, body, caller),
    }),
  }
}
