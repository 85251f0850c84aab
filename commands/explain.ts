import * as Args from '@oclif/core/args'
import { nearestMatch } from '../src/base/nearest-match.ts'
import { WbCommand } from '../src/cli/command/command.ts'
import { exitStatus } from '../src/cli/command/exit.ts'
import { UsageError } from '../src/cli/errors.ts'
import { errorCodes, errorDocs, errorRegistry, isErrorCode, WbError } from '../src/contract/errors.ts'

export default class Explain extends WbCommand {
  static override summary = 'explain an error code, or list them all'
  static override examples = ['wb explain kb_name_taken', 'wb explain']
  static override args = {
    code: Args.string({ description: 'error code, shown in parentheses after an error message' }),
  }
  protected override readonly usesFolderFiles = false

  async run() {
    const { args } = await this.parse(Explain)
    const code = args.code?.trim().toLowerCase().replaceAll('-', '_')
    if (code === undefined)
      return this.output.list(errorCodes.map(entry), {
        columns: {
          code: { value: row => row.code },
          status: { value: row => String(row.defaultStatus) },
          'what to do': { value: row => row.hint, format: 'flexible' },
        },
        empty: [],
      })
    if (!isErrorCode(code)) {
      const suggestion = nearestMatch(code, errorCodes)
      throw new UsageError(`"${code}" is not an error code`, [
        ...(suggestion ? [`did you mean ${suggestion}?`] : []),
        'wb explain',
      ])
    }
    const { defaultStatus, hint, docs } = entry(code)
    const status = exitStatus(new WbError(code, ''))
    this.output.fields(entry(code), {
      code,
      'http status': defaultStatus,
      'exit status': status,
      'what to do': hint,
      docs,
    })
  }
}

/** Returns the entry of `GET /error-codes`. */
function entry(code: (typeof errorCodes)[number]) {
  const { status, hint } = errorRegistry[code]
  return { code, defaultStatus: status, hint, docs: errorDocs(code) }
}
