import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { WbCommand } from '../src/cli/command/command.ts'
import { refuseProcessReport } from '../src/cli/connection/process-reports.ts'
import { allPages, jsonOf, knownMethod, namedHeaders } from '../src/cli/connection/raw-call.ts'
import { requestBody } from '../src/cli/connection/request-body.ts'
import { UsageError } from '../src/cli/faults.ts'
import { refuseClearText } from '../src/cli/settings/address.ts'
import { plain } from '../src/cli/terminal/terminal-text.ts'
import { failure } from '../src/client/failure.ts'
import type { Incoming } from '../src/client/fetch.ts'

export default class Api extends WbCommand {
  static override summary = 'call any route of the API'
  static override examples = [
    "wb api GET /api/v1/workspaces --pages --jq '.[].name'",
    'wb api POST /api/v1/workspaces -d \'{"name": "demo"}\'',
  ]
  static override args = {
    method: Args.string({ required: true, description: 'GET, POST, PATCH, DELETE' }),
    path: Args.string({ required: true, description: 'path and query, as /docs shows them' }),
  }
  static override flags = {
    data: Flags.string({ char: 'd', summary: 'body: text, @file, or - for stdin', helpValue: 'BODY' }),
    header: Flags.string({
      char: 'H',
      multiple: true,
      summary: 'further header, as "Name: value"',
      helpValue: 'HEADER',
    }),
    pages: Flags.boolean({ summary: 'follow nextCursor, and print all items' }),
  }
  protected override readonly mayRepeat = false

  async run() {
    const { args, flags } = await this.parse(Api)
    const method = knownMethod(args.method)
    const path = args.path.startsWith('/') ? args.path : `/${args.path}`
    await refuseProcessReport(path, this.profile)
    const body = flags.data === undefined ? undefined : await requestBody(flags.data, this.io)
    const headers = {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...namedHeaders(flags.header ?? []),
    }
    const { url, urlFrom } = this.profile
    const isSecret = 'authorization' in headers || 'cookie' in headers
    if (isSecret && url && !flags['insecure-http']) refuseClearText('the credential', { url, urlFrom })
    const call = { method, path, headers, body }
    if (flags.pages) this.output.value(await allPages(this.client, call))
    else await this.print(await this.client.raw(call))
  }

  private async print(answer: Incoming) {
    const text = await answer.text()
    const isRefused = answer.status >= 300
    // `--jq` is for what was asked for; a refusal is told as an error all the same.
    if (text !== '' && !(isRefused && this.output.filters)) this.show(answer, text)
    if (isRefused) throw await failure({ ...answer, headers: answer.headers, text: async () => text })
  }

  private show({ headers }: Incoming, text: string) {
    const isJson = headers.get('content-type')?.startsWith('application/json')
    const value = isJson ? jsonOf(text) : undefined
    if (value !== undefined) this.output.value(value)
    else if (this.output.filters) throw new UsageError('the answer is not JSON', ['leave --jq out'])
    else this.output.result(plain(text))
  }
}
