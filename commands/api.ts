import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { parseJson } from '../src/base/parse-json.ts'
import { WbCommand } from '../src/cli/command/command.ts'
import { refuseProcessReport } from '../src/cli/connection/process-reports.ts'
import { fetchAllPages, parseHeaders, parseMethod } from '../src/cli/connection/raw-call.ts'
import { readRequestBody } from '../src/cli/connection/request-body.ts'
import { UsageError } from '../src/cli/errors.ts'
import { requireEncryption } from '../src/cli/settings/address.ts'
import { plain } from '../src/cli/terminal/terminal-text.ts'
import { errorFromResponse } from '../src/client/error-from-response.ts'
import type { Incoming } from '../src/client/fetch.ts'

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
      summary: 'request body: text, @FILE, or - for stdin',
      helpValue: 'BODY',
    }),
    header: Flags.string({
      char: 'H',
      multiple: true,
      summary: 'request header, as "Name: value"; can be repeated',
      helpValue: 'HEADER',
    }),
    pages: Flags.boolean({ summary: 'follow nextCursor and print all items' }),
  }
  protected override readonly isSafeToRepeat = false

  async run() {
    const { args, flags } = await this.parse(Api)
    const method = parseMethod(args.method)
    const path = args.path.startsWith('/') ? args.path : `/${args.path}`
    await refuseProcessReport(path, this.profile)
    const body = flags.data === undefined ? undefined : await readRequestBody(flags.data, this.io)
    const headers = {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...parseHeaders(flags.header ?? []),
    }
    const { url, urlFrom } = this.profile
    const isSecret = 'authorization' in headers || 'cookie' in headers
    if (isSecret && url && !flags['insecure-http']) requireEncryption('the credential', { url, urlFrom })
    const call = { method, path, headers, body }
    if (flags.pages) this.output.value(await fetchAllPages(this.client, call))
    else await this.print(await this.client.raw(call))
  }

  private async print(answer: Incoming) {
    const text = await answer.text()
    const isRefused = answer.status >= 300
    // `--jq` applies to results; an error response is reported as an error.
    if (text !== '' && !(isRefused && this.output.hasFilter)) this.show(answer, text)
    if (isRefused)
      throw await errorFromResponse({ ...answer, headers: answer.headers, text: async () => text })
  }

  private show({ headers }: Incoming, text: string) {
    const isJson = headers.get('content-type')?.startsWith('application/json')
    const value = isJson ? parseJson(text) : undefined
    if (value !== undefined) this.output.value(value)
    else if (this.output.hasFilter) throw new UsageError('the response is not JSON', ['leave out --jq'])
    else this.output.result(plain(text))
  }
}
