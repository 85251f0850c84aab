import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { readPolicy } from '../../src/cli/access/read-policy.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { semanticFlag } from '../../src/cli/command/semantic-flag.ts'
import { ServiceCalls } from '../../src/cli/services/service-calls.ts'
import { kb } from '../../src/contract/knowledge.ts'

const states = ['active', 'draft', 'deprecated'] as const

export default class KbUpdate extends WbCommand {
  static override summary = 'change the settings of a knowledge base'
  static override examples = [
    'wb kb update handbook --description "for the whole team"',
    'wb kb update handbook --status deprecated',
    'wb kb update handbook --query-log on',
    'wb kb update handbook --policy team.policy --policy-enabled',
  ]
  static override args = { name: Args.string({ description: 'name or ID [the only knowledge base]' }) }
  static override flags = {
    description: Flags.string({ summary: 'description of the contents' }),
    status: Flags.option({ options: states, summary: 'lifecycle status' })(),
    language: Flags.string({ summary: 'language of the documents, such as de' }),
    lexical: Flags.boolean({ allowNo: true, summary: 'index words for lexical and hybrid search' }),
    semantic: semanticFlag(),
    'query-log': Flags.option({
      options: ['on', 'off'] as const,
      summary: 'record questions, so that wb kb insights can show them',
    })(),
    reranking: Flags.string({ summary: 'reranking service name or ID; "" removes it', helpValue: 'NAME' }),
    policy: Flags.string({
      summary: 'file with the access policy; "" removes the policy',
      helpValue: 'FILE',
    }),
    'policy-enabled': Flags.boolean({
      allowNo: true,
      summary: 'use the access policy instead of the built-in one',
    }),
  }

  protected override readonly finishesBackgroundWork = true

  async run() {
    const { args, flags } = await this.parse(KbUpdate)
    const { description, language, status, lexical: enabled, reranking, policy } = flags
    const policyEnabled = flags['policy-enabled']
    const semantic = flags.semantic && flags.semantic === 'on'
    const queryLog = flags['query-log'] && flags['query-log'] === 'on'
    const settings = [description, language, status, enabled, semantic, queryLog, reranking]
    this.requireChange([...settings, policy, policyEnabled])
    const policyDsl = policy === '' ? null : policy && (await readPolicy(this.io.cwd, policy))
    const { workspaceId, knowledgeBaseId, lexical: currentLexical } = await this.knowledgeBase(args.name)
    const services = new ServiceCalls(this.client, workspaceId)
    const rerankingServiceId =
      reranking && (await services.find(reranking, 'reranking', this.resolveContext)).id
    const lexical = enabled === undefined ? undefined : { ...currentLexical, enabled }
    const body = {
      description,
      language,
      status,
      lexical,
      semantic,
      queryLog,
      rerankingServiceId: reranking === '' ? null : rerankingServiceId,
      policyDsl,
      policyEnabled,
    }
    const changed = await this.client.call(kb.update, { params: { workspaceId, knowledgeBaseId }, body })
    this.output.reportSaved(changed, knowledgeBaseId, `updated knowledge base ${changed.name}`)
    if (queryLog)
      this.output.note(
        '  searches are recorded now, and kept for 30 days unless runtime.queryLog.retentionDays is set',
      )
  }
}
