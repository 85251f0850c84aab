/** Descriptions of operations whose route has none, by operation ID. */
export const operationDescriptions: Readonly<Record<string, string>> = {
  'operational.root': 'Returns the name and version of the runtime, and where its reference is.',
  'operational.health': 'Answers as long as the process runs. Use it as a liveness probe.',
  'operational.ready': 'Answers 503 while the runtime cannot serve requests. Use it as a readiness probe.',
  'operational.version': 'Returns the version, commit and build time of the runtime.',
  'operational.features': 'Returns which optional parts of the API this runtime offers.',
  'operational.errorCodes': 'Returns all error codes with their status, hint and documentation.',
  'operational.docs': 'Returns this reference as one HTML page, which loads no other files.',
  'operational.openapi': 'Returns this document. Generate typed clients from it.',
  'operation.metrics':
    'Returns counters, gauges and histograms of the process that answers, for Prometheus to scrape.',
  'operation.vendorCli':
    'The runtime never looks for the command line of a database vendor. The route is kept for old clients.',
  'operation.vendorProfiles':
    'The runtime never reads profiles of a vendor command line. The route is kept for old clients.',
  'setup.restart':
    'Finishes the requests in flight, then opens the runtime with the current configuration and environment. The process, address and port stay.',
  'auth.config': 'Returns how callers can authenticate, and the paths of the sign-in routes.',
  'auth.login':
    'Redirects a browser to the identity provider. Open it in a browser, not with an HTTP client.',
  'auth.callback': 'Receives the redirect of the identity provider, and sets the session cookie.',
  'protectedResources.runtime':
    'Returns the authorization servers that issue access tokens for the API (RFC 9728).',
  'auth.me': 'Returns the authenticated caller with its scopes and workspaces. Use it to check a credential.',
  'auth.refresh': 'Renews the session cookie before it expires.',
  'auth.logout': 'Deletes the session cookie. You stay signed in at the identity provider.',
  'auth.deviceAuthorize':
    'Starts a device sign-in (RFC 8628). Show the user the returned code and address, then poll `POST /auth/device/token`.',
  'auth.deviceToken':
    'Returns tokens once the user has approved the device. Until then it answers `authorization_pending`.',
  'auth.deviceRefresh': 'Exchanges the refresh token of a device for new tokens.',
  'workspaces.list': 'Returns the workspaces that the caller can reach, oldest first.',
  'workspaces.create':
    'Creates a workspace with default services and agents. The kind of store cannot be changed later.',
  'workspaces.show': 'Returns a workspace.',
  'workspaces.update': 'Changes the fields that the body names.',
  'workspaces.delete':
    'Deletes a workspace with its knowledge bases, documents, services, agents and keys. This cannot be undone.',
  'workspaces.testConnection':
    'Contacts the store of a workspace. Answers 200 whether or not the store answers. The result is in `ok`.',
  'connect.snippets':
    'Returns ready-made code for agent frameworks and MCP clients, with the addresses of this workspace filled in.',
  'connect.verify':
    'Lists the MCP tools of a workspace as a client would. Answers 200 whether or not that works. The result is in `ok`.',
  'connect.traffic': 'Returns the latest tool calls that MCP clients made in a workspace, newest first.',
  'apiKeys.list': 'Returns the keys of a workspace, including revoked ones. Tokens are never returned.',
  'apiKeys.create':
    'Creates an API key. The token is in this response only. A key cannot hold scopes that its creator does not hold.',
  'apiKeys.show': 'Returns a key without its token.',
  'apiKeys.rotate':
    'Creates a successor with the same scopes. The old token keeps working until the grace period ends.',
  'apiKeys.revoke': 'Revokes a key. Its next request is refused. The key stays in the list.',
  'principals.list': 'Returns the principals of a workspace, by ID.',
  'principals.show': 'Returns a principal.',
  'policy.preview':
    'Compiles a policy for a principal without applying it. Answers 200 also if the policy is wrong. The result is in `ok`.',
  'policy.audit': 'Returns what policies decided about documents, newest first.',
  'chunkers.list':
    'Returns the built-in chunkers, for `engine` and `strategy` of chunking services and `chunker` of an ingest.',
  'chunkingServices.list': 'Returns the chunking services of a workspace, oldest first.',
  'chunkingServices.create': 'Creates settings for splitting text. Knowledge bases refer to them by ID.',
  'chunkingServices.show': 'Returns a chunking service.',
  'chunkingServices.update':
    'Changes the fields that the body names. Documents that are already ingested keep their chunks.',
  'chunkingServices.delete':
    'Deletes a chunking service. It is refused while a knowledge base uses the service.',
  'embeddingServices.list': 'Returns the embedding services of a workspace, oldest first.',
  'embeddingServices.create': 'Creates a reference to an embedding model. Knowledge bases refer to it by ID.',
  'embeddingServices.show': 'Returns an embedding service.',
  'embeddingServices.update':
    'Changes the fields that the body names. While a knowledge base uses the service, fields that decide what its vectors mean cannot change.',
  'embeddingServices.delete':
    'Deletes an embedding service. It is refused while a knowledge base uses the service.',
  'rerankingServices.list': 'Returns the reranking services of a workspace, oldest first.',
  'rerankingServices.create':
    'Creates a reference to a reranking model. Searches do not call reranking models yet.',
  'rerankingServices.show': 'Returns a reranking service.',
  'rerankingServices.update': 'Changes the fields that the body names.',
  'rerankingServices.delete':
    'Deletes a reranking service. It is refused while a knowledge base or an agent uses the service.',
  'llmServices.list': 'Returns the LLM services of a workspace, oldest first.',
  'llmServices.show': 'Returns an LLM service.',
  'llmServices.delete': 'Deletes an LLM service. It is refused while an agent uses the service.',
  'llmModels.list':
    'Returns the models of a provider. If the provider does not answer, the list is a short built-in one.',
  'secretReleases.create':
    'Lets services use a secret of the runtime with one host. Without a release, a secret reference in a service is stored but never used.',
  'secretReleases.delete': 'Deletes a release. The next use of the secret is refused.',
  'mcp.end': 'Always succeeds, because the server keeps no sessions.',
  'mcpServers.list': 'Returns the MCP servers of a workspace, by ID.',
  'mcpServers.create': 'Registers an MCP server. Agents can call its tools once they name them in `toolIds`.',
  'mcpServers.show': 'Returns an MCP server.',
  'mcpServers.update':
    'Changes the fields that the body names. After a change of `url`, its tools have to be accepted again.',
  'mcpServers.delete': 'Deletes an MCP server. Agents that name its tools work without them.',
  'mcpServers.review':
    'Accepts new or changed tools. Each is named with the hash that you reviewed, so that a later change is not accepted by mistake.',
  'mcpServers.showSignIn':
    'Returns whether the caller is signed in to an MCP server with `authType` `oauth2`. Tokens are never returned.',
  'mcpServers.beginSignIn':
    'Returns the page at which the caller signs in. The browser then returns to `redirectUri` with `state` and `code`, which finish the sign-in within ten minutes.',
  'mcpServers.finishSignIn':
    'Exchanges the authorization code for tokens, which the runtime keeps. Only the caller who began the sign-in can finish it, and only once.',
  'mcpServers.endSignIn':
    'Deletes the tokens of the caller, and revokes them if the authorization server supports that.',
  'kb.list': 'Returns the knowledge bases of a workspace, oldest first.',
  'kb.show': 'Returns a knowledge base with the state of its built-in embedder.',
  'kb.update':
    'Changes the fields that the body names. The name, the services for chunks and vectors, and the collection cannot change.',
  'kb.delete': 'Deletes a knowledge base and its documents. A collection that existed before stays.',
  'kb.adoptable': 'Returns collections of the store that a new knowledge base can use with `attach`.',
  'filters.list': 'Returns the saved filters of a knowledge base, oldest first.',
  'filters.create': 'Saves a filter. Searches name it in `knowledgeFilterId`.',
  'filters.show': 'Returns a saved filter.',
  'filters.update': 'Changes the fields that the body names. `filter` is replaced as a whole.',
  'filters.delete': 'Deletes a saved filter. Searches that name it fail from then on.',
  'documents.list': 'Returns the documents of a knowledge base, oldest first.',
  'documents.create':
    'Registers a document without text, for programs that store its chunks as records themselves.',
  'documents.show': 'Returns a document with the progress of its ingest.',
  'documents.update':
    'Changes the fields that the body names. Metadata and visibility also change on its chunks.',
  'documents.delete': 'Deletes a document and its chunks.',
  'documents.bulkDelete':
    'Deletes up to 100 documents. Answers 200 also if some could not be deleted. The failures are in `failed`.',
  'documents.ingest':
    'Splits a text into chunks, embeds and indexes them. Answers 201 when it is searchable, 202 with a job for `?async=true`, and 200 if the text or the file name exists already.',
  'records.upsert':
    'Stores up to 500 passages directly, without a document. A record replaces the one with the same ID.',
  'records.delete': 'Deletes a record. Answers 200 also if there was none. The result is in `deleted`.',
  'jobs.list': 'Returns the jobs of a workspace, newest first.',
  'jobs.show': 'Returns a job. Poll it, or follow its events.',
  'agentTemplates.list': 'Returns the built-in templates for agents.',
  'agentTemplates.listIn':
    'Returns the built-in templates for agents, for callers with access to one workspace.',
  'agents.list': 'Returns the agents of a workspace, oldest first.',
  'agents.create': 'Creates an agent. Without `llmServiceId` it uses the chat provider of the runtime.',
  'agents.createFromTemplate':
    'Creates an agent from a template. It uses the first LLM service of the workspace.',
  'agents.show': 'Returns an agent.',
  'agents.update': 'Changes the fields that the body names. Lists and `toolRules` are replaced as a whole.',
  'agents.delete': 'Deletes an agent with its conversations and messages.',
  'agents.tools':
    'Returns the built-in tools and those of registered MCP servers. Servers that cannot be reached are left out.',
  'conversations.listAll':
    'Returns the conversations with all agents of a workspace that the caller can see, newest first.',
  'conversations.list': 'Returns the conversations with an agent that the caller can see, newest first.',
  'conversations.create': 'Starts a conversation. `knowledgeBaseIds` limits what is searched in it.',
  'conversations.show': 'Returns a conversation without its messages.',
  'conversations.update': 'Changes the fields that the body names.',
  'conversations.delete': 'Deletes a conversation with its messages and attachments.',
  'attachments.list': 'Returns the attachments of a conversation without their texts, oldest first.',
  'attachments.show': 'Returns an attachment with its text.',
  'messages.list': 'Returns the messages of a conversation, oldest first.',
  'messages.show': 'Returns a message.',
  'chat.send':
    'Sends a message and returns it with the complete answer. Use the streamed route to show the answer as it is written.',
  'chat.stream':
    'Sends a message and streams the answer as server-sent events: `user-message`, then `token` and tool events, and finally `done` or `error`.',
}
