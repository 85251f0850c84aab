import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { useServer } from './harness.ts'

const wire = useServer()

/** Codes of docs/requirements.md#registered-codes and docs/requirements.md#S7.2-10, by status. */
const specified: Record<number, string> = {
  400: `dimension_mismatch embedding_dimension_mismatch empty_file invalid_chunker invalid_cursor
    invalid_metadata invalid_multipart invalid_parser invalid_playground_command invalid_visible_to
    kb_name_must_match_collection missing_file validation_error vector_collection_not_allowed
    vector_collection_required vectorize_service_mismatch`,
  401: 'policy_principal_required unauthorized',
  403: 'forbidden forbidden_origin policy_denied',
  404: `agent_not_found agent_template_not_found api_key_not_found chat_message_not_found chat_not_found
    chunking_service_not_found collection_not_found conversation_not_found document_not_found
    embedding_service_not_found job_not_found knowledge_base_not_found knowledge_filter_not_found
    llm_service_not_found not_found principal_not_found reranking_service_not_found workspace_not_found`,
  409: `chunking_service_in_use collection_name_taken conflict embedding_service_in_use kb_name_taken
    llm_service_in_use reranking_service_in_use workspace_database_conflict workspace_name_conflict`,
  413: 'payload_too_large',
  422: `agent_tool_unresolved llm_model_not_chat llm_model_unavailable llm_provider_unsupported
    unsupported_workspace_kind workspace_misconfigured`,
  429: 'rate_limited',
  500: 'cascade_incomplete internal_error',
  501: `device_flow_not_supported hybrid_not_supported list_records_not_supported rerank_not_supported`,
  502: 'data_api_error',
  503: `chat_disabled collection_unavailable control_plane_unavailable data_api_unavailable draining
    driver_unavailable embedding_unavailable llm_credential_missing setup_restart_unavailable`,
}

/** Further codes that clients rely on. */
const added: Record<number, string> = {
  404: 'mcp_server_not_found',
  415: 'unsupported_file_type',
  422: 'extraction_failed empty_document',
  431: 'headers_too_large',
  502: 'session_too_large',
  503: `docling_unavailable identity_provider_unavailable control_plane_dns_unresolvable
    control_plane_unreachable control_plane_unauthorized control_plane_forbidden`,
}

interface Registered {
  readonly code: string
  readonly defaultStatus: number
  readonly hint: string
  readonly docs: string
}

test('S7.1-06 S9-02: codes keep their names and statuses', async () => {
  const statuses = new Map((await registered()).map(({ code, defaultStatus }) => [code, defaultStatus]))
  const frozen = [...statusByCode(specified), ...statusByCode(added)]
  expect(statusByCode(specified)).toHaveLength(72)
  for (const [code, status] of frozen) expect(statuses.get(code), code).toBe(status)
})

test('each code is listed once', async () => {
  const codes = (await registered()).map(({ code }) => code)
  expect(codes).toEqual([...new Set(codes)])
})

test('S7.1-02 S7.1-03: each code has a hint and an existing anchor in the documentation', async () => {
  const anchors = anchorsOf(readFileSync(new URL('../../docs/errors.md', import.meta.url), 'utf8'))
  for (const { code, hint, docs } of await registered()) {
    expect(hint, code).toMatch(/\S/)
    expect(docs).toBe(`docs/errors.md#${code.replaceAll('_', '-')}`)
    expect(anchors, docs).toContain(docs.split('#')[1])
  }
})

async function registered(): Promise<Registered[]> {
  return (await wire.get('/error-codes')).codes as Registered[]
}

function statusByCode(table: Record<number, string>): [string, number][] {
  return Object.entries(table).flatMap(([status, codes]) => {
    return codes.split(/\s+/).map((code): [string, number] => [code, Number(status)])
  })
}

/** Returns the anchors of a Markdown page, both explicit ones and those of headings. */
function anchorsOf(markdown: string): Set<string> {
  const explicit = [...markdown.matchAll(/<a (?:id|name)="([^"]+)"/g)].map(([, name]) => name!)
  const headings = [...markdown.matchAll(/^#+\s+(.+)$/gm)].map(([, title]) => slug(title!))
  return new Set([...explicit, ...headings])
}

function slug(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^\w\s-]/g, '')
    .trim()
    .replace(/\s+/g, '-')
}
