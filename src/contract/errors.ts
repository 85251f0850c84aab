/** Registry entry of an error code: the HTTP status, and one sentence on what to do next. */
interface Registered {
  readonly status: number
  readonly hint: string
}

const serviceInUseHint = 'Delete the knowledge bases that bind the service first.'
const signInAgainHint = 'Start the sign-in again; if it stays, check the client registration.'

/** Hint for a runtime in rescue mode. */
export const rescueHint =
  'Mend the cause, then send POST /setup/restart; GET /setup-status says how it stands.'

/**
 * All values of `error.code`. The name and status of a code never change.
 *
 * @see docs/errors.md
 */
export const errorRegistry = {
  access_denied: { status: 400, hint: 'The sign-in was refused at the identity provider; start it again.' },
  agent_not_found: { status: 404, hint: 'List the agents of the workspace and use one of their ids.' },
  agent_template_not_found: { status: 404, hint: 'List the agent templates and use one of their ids.' },
  agent_tool_unresolved: {
    status: 422,
    hint: 'Use tool ids from the available tools of the workspace, or leave the entry out.',
  },
  account_selection_required: {
    status: 400,
    hint: 'The identity provider asks for an account to be chosen; start the sign-in again.',
  },
  api_key_not_found: {
    status: 404,
    hint: 'List the keys of the workspace; a revoked key cannot be revoked again.',
  },
  attachment_limit_exceeded: {
    status: 409,
    hint: 'Remove an attachment of the conversation, or begin another conversation.',
  },
  attachment_not_found: {
    status: 404,
    hint: 'List the attachments of the conversation and use one of their ids.',
  },
  authorization_pending: {
    status: 400,
    hint: 'Approve the sign-in in the browser; keep polling at the interval.',
  },
  cascade_incomplete: {
    status: 500,
    hint: 'The workspace is still there; send the same delete again to finish it.',
  },
  chat_answer_failed: {
    status: 502,
    hint: 'Read the reason of the model provider in the message, then retry or use another LLM service.',
  },
  chat_disabled: {
    status: 503,
    hint: 'Configure a chat provider, or give the agent an LLM service of its own.',
  },
  chat_image_not_found: {
    status: 404,
    hint: 'Use an index from `images` of the message.',
  },
  chat_message_not_found: {
    status: 404,
    hint: 'List the messages of the conversation and use one of their ids.',
  },
  chat_not_found: { status: 404, hint: 'List the chats of the agent and use one of their ids.' },
  chunking_service_in_use: { status: 409, hint: serviceInUseHint },
  chunking_service_not_found: {
    status: 404,
    hint: 'List the chunking services of the workspace and use one of their ids.',
  },
  collection_name_taken: { status: 409, hint: 'Choose another name, or attach the collection that exists.' },
  collection_not_found: { status: 404, hint: 'List the adoptable collections and use one of their names.' },
  collection_unavailable: {
    status: 503,
    hint: 'Retry in a moment; if it stays, check the workspace with a test connection.',
  },
  conflict: { status: 409, hint: 'Read the resource again, then repeat the change or choose another id.' },
  control_plane_dns_unresolvable: {
    status: 503,
    hint: 'Check the host name of the control plane in the configuration.',
  },
  consent_required: {
    status: 400,
    hint: 'The identity provider asks for consent; start the sign-in again and give it.',
  },
  control_plane_forbidden: { status: 503, hint: 'Give the control plane credential the rights it lacks.' },
  control_plane_unauthorized: {
    status: 503,
    hint: 'Check the control plane credential in the configuration.',
  },
  control_plane_unavailable: {
    status: 503,
    hint: 'Check that the data directory or the database is reachable, then retry.',
  },
  control_plane_unreachable: {
    status: 503,
    hint: 'Check the address of the control plane and the network to it.',
  },
  conversation_not_found: {
    status: 404,
    hint: 'Conversations belong to one agent; list them under that agent.',
  },
  data_api_error: {
    status: 502,
    hint: 'Read the runtime log under this request id for what the data API refused.',
  },
  data_api_unavailable: { status: 503, hint: 'Retry in a moment; check the endpoint of the workspace.' },
  device_authorize_failed: {
    status: 502,
    hint: 'Try again; if it stays, check the client registration at the identity provider.',
  },
  device_flow_not_supported: {
    status: 501,
    hint: 'Sign in with an API key, or use a provider with a device endpoint.',
  },
  device_token_failed: { status: 502, hint: signInAgainHint },
  dimension_mismatch: { status: 400, hint: 'Send vectors of the dimension of the bound embedding service.' },
  docling_unavailable: { status: 503, hint: 'Start the converter, or send parser=native.' },
  document_not_found: { status: 404, hint: 'Document ids belong to one knowledge base; list its documents.' },
  draining: { status: 503, hint: 'The runtime is shutting down; retry when it is back.' },
  driver_unavailable: { status: 503, hint: 'Use a workspace kind that this runtime has a driver for.' },
  embedding_dimension_mismatch: {
    status: 400,
    hint: 'Set the dimension of the embedding service to what its model returns, in a new service.',
  },
  embedding_service_in_use: { status: 409, hint: serviceInUseHint },
  embedding_service_not_found: {
    status: 404,
    hint: 'List the embedding services of the workspace and use one of their ids.',
  },
  embedding_unavailable: {
    status: 503,
    hint: 'Check the endpoint of the embedding service and that its credential is set and released.',
  },
  empty_document: {
    status: 422,
    hint: 'The file holds no text; convert it (a scan needs OCR) and send it again.',
  },
  empty_file: { status: 400, hint: 'Send a file with at least one byte.' },
  expired_token: { status: 400, hint: 'The code ran out; start the sign-in again.' },
  extraction_failed: { status: 422, hint: 'Check that the file opens elsewhere and is what its name says.' },
  forbidden: { status: 403, hint: 'Ask for a key with the missing scope, or for one of this workspace.' },
  forbidden_origin: {
    status: 403,
    hint: 'Add the name to runtime.allowedHosts or runtime.allowedOrigins, or set runtime.publicOrigin.',
  },
  headers_too_large: { status: 431, hint: 'Send at most 200 headers of less than 32 KB in all.' },
  hybrid_not_supported: { status: 501, hint: 'Send hybrid=false.' },
  identity_provider_unavailable: { status: 503, hint: 'Retry in a moment; your session is kept.' },
  internal_error: { status: 500, hint: 'Look up this request id in the runtime log.' },
  invalid_callback: { status: 400, hint: 'Start the sign-in again from the beginning.' },
  invalid_chunker: { status: 400, hint: 'List the chunkers (GET /api/v1/chunkers) and use their options.' },
  invalid_cursor: {
    status: 400,
    hint: 'Start again without a cursor; use nextCursor only for the same list.',
  },
  interaction_required: {
    status: 400,
    hint: 'The identity provider needs an answer from you; start the sign-in again.',
  },
  invalid_grant: {
    status: 400,
    hint: 'The code or token is not known to the identity provider any more; start the sign-in again.',
  },
  invalid_metadata: {
    status: 400,
    hint: 'Send flat metadata: text keys with text, number, boolean or null values.',
  },
  invalid_multipart: { status: 400, hint: 'Send multipart/form-data with a boundary and a complete body.' },
  invalid_parser: { status: 400, hint: 'Use parser auto, native or docling.' },
  invalid_playground_command: {
    status: 400,
    hint: 'Send one command whose key is commandName, with the target it needs.',
  },
  invalid_request: { status: 400, hint: 'Send the fields that the route names.' },
  invalid_state: { status: 400, hint: 'The sign-in was used or ran out; start it again.' },
  invalid_visible_to: {
    status: 400,
    hint: 'Send a non-empty array of principal ids, or ["*"] for everyone.',
  },
  invalid_scope: {
    status: 400,
    hint: 'Have auth.oidc.client.scopes name only what the identity provider offers.',
  },
  job_not_found: { status: 404, hint: 'The job does not exist or is past its retention.' },
  kb_name_must_match_collection: {
    status: 400,
    hint: 'Name the knowledge base as the collection it adopts.',
  },
  kb_name_taken: { status: 409, hint: 'Choose another name; names are unique in a workspace.' },
  knowledge_base_not_found: {
    status: 404,
    hint: 'List the knowledge bases of the workspace and use one of their ids.',
  },
  knowledge_filter_not_found: {
    status: 404,
    hint: 'List the filters of the knowledge base and use one of their ids.',
  },
  list_records_not_supported: { status: 501, hint: 'Use a workspace whose store can list records.' },
  llm_credential_missing: {
    status: 503,
    hint: 'Set the credential that the service names, and release it for the host of the service.',
  },
  llm_model_no_images: {
    status: 422,
    hint: 'Choose a model that reads images, or send the message without them.',
  },
  llm_model_not_chat: { status: 422, hint: 'Choose a model that answers chat completions.' },
  llm_model_unavailable: { status: 422, hint: 'Choose a model from GET /api/v1/llm-models.' },
  llm_provider_unsupported: { status: 422, hint: 'Use provider openrouter, openai or ollama.' },
  llm_service_in_use: { status: 409, hint: 'Give the agents that bind the service another one first.' },
  llm_service_not_found: {
    status: 404,
    hint: 'List the LLM services of the workspace and use one of their ids.',
  },
  login_required: { status: 400, hint: 'Sign in at the identity provider; start the sign-in again.' },
  mcp_server_not_found: {
    status: 404,
    hint: 'List the MCP servers of the workspace and use one of their ids.',
  },
  mcp_sign_in_failed: {
    status: 502,
    hint: 'Check the url and the OAuth fields of the MCP server, then start the sign-in again.',
  },
  missing_file: { status: 400, hint: 'Send the file in a part named file, with a file name.' },
  no_refresh_token: { status: 401, hint: 'Sign in again; this session cannot be renewed.' },
  not_configured: { status: 404, hint: 'Configure auth.oidc.client to offer sign-in with a browser.' },
  not_found: { status: 404, hint: 'Check the path and the method against /docs.' },
  overloaded: {
    status: 503,
    hint: 'Retry after the time in Retry-After; send fewer or smaller bodies at once if it happens often.',
  },
  payload_too_large: { status: 413, hint: 'Send a smaller body, or split it over several requests.' },
  policy_denied: { status: 403, hint: 'Ask who manages access in this workspace to be let in.' },
  policy_principal_required: {
    status: 401,
    hint: 'Sign in as someone whom the workspace knows as a principal.',
  },
  principal_not_found: {
    status: 404,
    hint: 'List the principals of the workspace and use one of their ids.',
  },
  rate_limited: { status: 429, hint: 'Wait for the seconds in Retry-After, then send it again.' },
  refresh_failed: { status: 401, hint: 'Sign in again.' },
  rerank_not_supported: { status: 501, hint: 'Send rerank=false.' },
  reranking_service_in_use: {
    status: 409,
    hint: 'Unbind the service from knowledge bases and agents first.',
  },
  reranking_service_not_found: {
    status: 404,
    hint: 'List the reranking services of the workspace and use one of their ids.',
  },
  secret_release_not_found: {
    status: 404,
    hint: 'List the releases and use one of their ids; what the configuration releases is changed there.',
  },
  server_error: { status: 400, hint: 'The identity provider failed; start the sign-in again in a moment.' },
  session_too_large: {
    status: 502,
    hint: 'Have the identity provider issue smaller tokens (fewer claims or groups).',
  },
  setup_restart_unavailable: { status: 503, hint: 'Restart the runtime by hand.' },
  slow_down: { status: 400, hint: 'Poll five seconds slower.' },
  token_exchange_failed: { status: 502, hint: signInAgainHint },
  temporarily_unavailable: {
    status: 400,
    hint: 'The identity provider is busy; start the sign-in again in a moment.',
  },
  token_validation_failed: { status: 401, hint: 'Sign in again; if it stays, check issuer and audience.' },
  unauthorized: {
    status: 401,
    hint: 'Send a valid API key, or a token of the identity provider, as a bearer token.',
  },
  unsupported_file_type: {
    status: 415,
    hint: 'Send text, or one of the formats that the documentation lists.',
  },
  unauthorized_client: { status: 400, hint: 'Check the client registration at the identity provider.' },
  unsupported_response_type: {
    status: 400,
    hint: 'Check the client registration at the identity provider: it needs the code flow.',
  },
  unsupported_workspace_kind: {
    status: 422,
    hint: 'The operation does not exist for workspaces of this kind.',
  },
  validation_error: {
    status: 400,
    hint: 'Correct the field that the message names; /docs shows the schema.',
  },
  vector_collection_not_allowed: {
    status: 400,
    hint: 'Leave the vector out; the space of this collection is made by the runtime.',
  },
  vector_collection_required: { status: 400, hint: 'Name a collection with vectors in vectorCollection.' },
  vectorize_service_mismatch: {
    status: 400,
    hint: "Bind an embedding service that equals the collection's own.",
  },
  workspace_database_conflict: {
    status: 409,
    hint: 'Use another url or keyspace; one workspace owns a database.',
  },
  workspace_misconfigured: {
    status: 422,
    hint: 'Give the workspace the url, keyspace and credential that its kind needs.',
  },
  workspace_name_conflict: { status: 409, hint: 'Choose another name; workspace names are unique.' },
  workspace_not_found: {
    status: 404,
    hint: 'List the workspaces that you may see and use one of their ids.',
  },
} as const satisfies Record<string, Registered>

export type ErrorCode = keyof typeof errorRegistry

/** All codes in alphabetical order. */
export const errorCodes = Object.keys(errorRegistry).sort() as ErrorCode[]

export function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(errorRegistry, text)
}

/** Returns the anchor of a code in the documentation. */
export function errorDocs(code: ErrorCode): string {
  return `docs/errors.md#${code.replaceAll('_', '-')}`
}

/**
 * Body of every error response.
 *
 * @see docs/requirements.md#S7.1-01
 */
export interface ErrorEnvelope {
  error: { code: string; message: string; requestId: string; hint?: string; docs?: string }
}

/**
 * The only error whose message is shown to users, in the server and in clients.
 *
 * Any other thrown error is a defect and is reported as `internal_error`.
 */
export class WbError extends Error {
  override readonly name = 'WbError'
  readonly status: number
  readonly hint: string

  /**
   * @param code     registered code; decides status and hint
   * @param message  describes the problem; safe to show, contains no secret
   * @param facts    `hint` and `status` replace the registered ones; the rest is only logged
   */
  constructor(
    readonly code: ErrorCode,
    message: string,
    readonly facts: {
      hint?: string
      status?: number
      requestId?: string
      headers?: Record<string, string | readonly string[]>
      [fact: string]: unknown
    } = {},
    options?: ErrorOptions,
  ) {
    super(message, options)
    this.status = facts.status ?? errorRegistry[code].status
    this.hint = facts.hint ?? errorRegistry[code].hint
  }
}
