/** Title and description of a topic in the API reference. */
export interface TopicText {
  readonly title: string
  readonly description: string
}

/** Topics in the order of the API reference, most used first. */
export const topicTexts: Readonly<Record<string, TopicText>> = {
  workspaces: {
    title: 'Workspaces',
    description: 'Tenants. All other resources belong to a workspace, and workspaces do not share data.',
  },
  kb: {
    title: 'Knowledge bases',
    description: 'Sets of documents that are searched together: create one, ingest documents, and search it.',
  },
  documents: {
    title: 'Documents',
    description: 'Texts and files of a knowledge base, which are split into chunks when they are ingested.',
  },
  trash: {
    title: 'Trash',
    description: 'Deleted documents, which can be restored until they expire.',
  },
  jobs: { title: 'Jobs', description: 'Background work, such as an asynchronous ingest.' },
  folders: {
    title: 'Descriptions of folders',
    description: 'What the files of a folder are. It is embedded with their chunks, and shown to agents.',
  },
  filters: {
    title: 'Saved filters',
    description: 'Named conditions that limit a search to some passages of a knowledge base.',
  },
  records: { title: 'Records', description: 'Texts or vectors that you store directly, without a document.' },
  agents: { title: 'Agents', description: 'Assistants that answer questions from knowledge bases.' },
  agentTemplates: { title: 'Agent templates', description: 'Built-in templates to create agents from.' },
  conversations: { title: 'Conversations', description: 'Conversations with agents.' },
  attachments: { title: 'Attachments', description: 'Files that are attached to one conversation.' },
  messages: { title: 'Messages', description: 'Messages of a conversation.' },
  chat: { title: 'Chat', description: 'Sending messages to agents, and approving their tool calls.' },
  embeddingServices: { title: 'Embedding services', description: 'Models that turn text into vectors.' },
  chunkingServices: { title: 'Chunking services', description: 'Settings for splitting text into chunks.' },
  chunkPreview: { title: 'Chunk previews', description: 'The chunks of a file before it is ingested.' },
  chunkers: { title: 'Chunkers', description: 'Built-in algorithms that split text.' },
  llmServices: { title: 'LLM services', description: 'Language models that write the answers of agents.' },
  llmModels: { title: 'Models', description: 'Models that a provider offers.' },
  rerankingServices: { title: 'Reranking services', description: 'Models that reorder passages.' },
  secretReleases: {
    title: 'Secret releases',
    description: 'Permissions for services to send a secret of the runtime to one host.',
  },
  auth: {
    title: 'Sign-in',
    description: 'The authenticated caller, and sign-in for browsers and devices.',
  },
  protectedResources: {
    title: 'OAuth metadata',
    description:
      'Metadata for OAuth clients: which authorization servers issue access tokens for the API and for MCP endpoints.',
  },
  apiKeys: { title: 'API keys', description: 'Keys that programs authenticate with.' },
  principals: {
    title: 'Principals',
    description: 'Users and programs in a workspace, with roles and attributes.',
  },
  policy: {
    title: 'Policies',
    description: 'Conditions that define which documents a principal can see.',
  },
  accessTools: {
    title: 'Access questions',
    description:
      'Who sees what, and why. The answers are about all documents, even those that the caller cannot see.',
  },
  audit: { title: 'Audit', description: 'Records of actions and denied requests, with their callers.' },
  mcp: { title: 'MCP', description: 'The MCP (Model Context Protocol) server of each workspace.' },
  mcpServers: { title: 'MCP servers', description: 'Servers whose tools agents can call.' },
  openai: {
    title: 'OpenAI API',
    description: 'Access to agents for any client of the OpenAI API. Each agent is a model.',
  },
  connect: { title: 'Connect', description: 'Code and checks for other programs that use a workspace.' },
  operational: { title: 'Runtime', description: 'Health, version and documentation of the runtime.' },
  operation: {
    title: 'Monitoring',
    description: 'Metrics, health and recent errors of the server process, for operators.',
  },
  setup: { title: 'Setup', description: 'Provider keys and restarts, for operators.' },
  playground: { title: 'Data API playground', description: 'Commands for workspaces on a remote database.' },
}
