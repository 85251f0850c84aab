import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { parseJson } from '../src/base/parse-json.ts'
import { WbCommand } from '../src/cli/command/command.ts'
import { fetchAllPages, parseHeaders, parseMethod } from '../src/cli/connection/raw-call.ts'
import { rejectProcessReport } from '../src/cli/connection/reject-process-report.ts'
import { readRequestBody } from '../src/cli/connection/request-body.ts'
import { UsageError } from '../src/cli/errors.ts'
import { requireEncryption } from '../src/cli/settings/address.ts'
import { plain } from '../src/cli/terminal/terminal-text.ts'
import { errorFromResponse } from '../src/client/error-from-response.ts'
import type { IncomingResponse } from '../src/client/fetch.ts'

export default class Api extends WbCommand {
  static override summary = 'send a request to any route of the API'
  static override examples = [
    "wb api GET /api/v1/workspaces --pages --jq '.[].name'",
    'wb api POST /api/v1/workspaces -d \'{"name": "demo"}\'',
  ]
  static override args = {
    method: Args.string({ required: true, description: 'GET, POST, PATCH, DELETE' }),
    path: Args.string({ required: true, description: 'path and query; `wb open` shows all routes' }),
  }
  static override flags = {
    data: Flags.string({
      char: 'd',
      summary: 'request body: a JSON string, @FILE, or - for stdin',
      helpValue: 'BODY',
    }),
    header: Flags.string({
      char: 'H',
      multiple: true,
      summary: 'request header, as "Name: value"; can be repeated',
      helpValue: 'HEADER',
    }),
    pages: Flags.boolean({ summary: 'fetch all pages and print their items' }),
  }
  protected override readonly isSafeToRepeat = false

  async run() {
    const { args, flags } = await this.parse(Api)
    const method = parseMethod(args.method)
    const path = args.path.startsWith('/') ? args.path : `/${args.path}`
    await rejectProcessReport(path, this.profile)
    const body = flags.data === undefined ? undefined : await readRequestBody(flags.data, this.io)
    const headers = {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...parseHeaders(flags.header ?? []),
    }
    const { url, urlSource } = this.profile
    const isSecret = 'authorization' in headers || 'cookie' in headers
    if (isSecret && url && !flags['insecure-http']) requireEncryption('the credential', { url, urlSource })
    const call = { method, path, headers, body }
    if (flags.pages) this.output.value(await fetchAllPages(this.client, call))
    else await this.print(await this.client.raw(call))
  }

  private async print(response: IncomingResponse) {
    const text = await response.text()
    const isError = response.status >= 300
    // `--jq` applies to results; an error response is reported as an error.
    if (text !== '' && !(isError && this.output.hasFilter)) this.show(response, text)
    if (isError)
      throw await errorFromResponse({ ...response, headers: response.headers, text: async () => text })
  }

  private show({ headers }: IncomingResponse, text: string) {
    const isJson = headers.get('content-type')?.startsWith('application/json')
    const value = isJson ? parseJson(text) : undefined
    if (value !== undefined) this.output.value(value)
    else if (this.output.hasFilter) throw new UsageError('the response is not JSON', ['leave out --jq'])
    else this.output.result(plain(text))
  }
}
