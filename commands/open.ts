import * as Args from '@oclif/core/args'
import { WbCommand } from '../src/cli/command/command.ts'
import { browserPages, browserUrl, openPage } from '../src/cli/connection/browser.ts'

export default class Open extends WbCommand {
  static override summary = 'open a page of the runtime in a browser'
  static override description =
    'Prints the address and opens it. In a pipe, in CI, over SSH or without a display, only prints it.'
  static override examples = ['wb open', 'wb open api --url https://workbase.example']
  static override args = {
    page: Args.string({
      options: Object.keys(browserPages),
      default: 'docs',
      ignoreStdin: true,
      description: 'page: docs (the API reference) or api (the OpenAPI document)',
    }),
  }

  async run() {
    const { args } = await this.parse(Open)
    const url = (await browserUrl(this.profile)) + browserPages[args.page as keyof typeof browserPages]
    if (this.output.json) return this.output.value({ url })
    this.output.result(url)
    await openPage(url, this.io, this.output)
  }
}
