import * as Flags from '@oclif/core/flags'
import { secretReleaseChoices } from '../../src/cli/command/choices.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { existingArg } from '../../src/cli/command/existing-arg.ts'
import { pickResource } from '../../src/cli/find/resolve.ts'
import { collect } from '../../src/client/client.ts'
import { type SecretRelease, secretReleases } from '../../src/contract/releases.ts'

export default class ServicesDisallow extends WbCommand {
  static override summary = 'stop allowing a secret to be sent to a host'
  static override examples = [
    'wb services disallow env:VLLM_KEY --as-operator',
    'wb services disallow env:VLLM_KEY --host models.example.com:8443 --as-operator',
  ]
  static override args = {
    ref: existingArg(secretReleaseChoices, 'secret reference, or ID of the release'),
  }
  static override flags = { host: Flags.string({ summary: 'host of the release, if there are several' }) }

  async run() {
    const { args, flags } = await this.parse(ServicesDisallow)
    const { releaseId, ref, host } = await this.findRelease(args.ref, flags.host)
    await this.client.call(secretReleases.delete, { params: { releaseId } })
    this.output.reportDeleted(releaseId, `${ref} is no longer released for ${host}`)
  }

  private async findRelease(reference: string, host: string | undefined): Promise<SecretRelease> {
    const items = this.client.items(secretReleases.list, {})
    const all = (await collect(items)).filter(row => host === undefined || row.host === host)
    const candidates = all.map(row => ({ row, id: row.releaseId, name: row.ref }))
    return pickResource(
      candidates,
      reference,
      {
        noun: 'secret release',
        notFoundCode: 'secret_release_not_found',
        listCommand: 'wb services releases',
        createCommands: ['wb services allow REF --host HOST'],
      },
      this.resolveContext.promptForChoice,
    )
  }
}
