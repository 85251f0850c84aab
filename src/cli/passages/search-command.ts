import * as Flags from '@oclif/core/flags'
import type { KnowledgeBase } from '../../contract/knowledge.ts'
import { limits } from '../../contract/limits.ts'
import { WbCommand } from '../command/command.ts'
import { findFilter } from '../find/filter.ts'
import type { ResolveContext } from '../find/resolve.ts'
import { readIngestedFolders } from '../ingest/ingested-folders.ts'
import { describeEmptyResult } from './empty-result.ts'
import { findPassages, search } from './find-passages.ts'
import { storeSearch, toCitedHits } from './last-search.ts'
import { conditionFlags, parseCondition } from './parse-condition.ts'
import { printPassages } from './print-passages.ts'
import { modeNames, parseShare, rankingOptions, type SearchMode } from './ranking-options.ts'
import { type ShapingSettings, shapingFlags, shapingOptions } from './shaping-flags.ts'
import type { WorkspaceScope } from './workspace-scope.ts'

/** Flags of search commands. */
export const searchFlags = {
  limit: Flags.integer({ default: 10, min: 1, max: limits.topKMax, summary: 'maximum number of passages' }),
  mode: Flags.option({ options: modeNames })({ summary: 'ranking method' }),
  'lexical-weight': Flags.custom<number>({ parse: async text => parseShare('--lexical-weight', text) })({
    summary: 'weight of the lexical score in hybrid mode, from 0 to 1',
    helpValue: 'NUMBER',
  }),
  rerank: Flags.boolean({ allowNo: true, summary: 'reorder the results, by service or by words' }),
  ...conditionFlags,
  saved: Flags.string({ summary: 'saved filter name or ID', helpValue: 'NAME' }),
  ...shapingFlags,
  explain: Flags.boolean({ summary: 'explain the rank of each passage' }),
}

/** Values of {@link searchFlags}. */
interface SearchFlags extends ShapingSettings {
  readonly limit: number
  readonly mode?: SearchMode
  readonly 'lexical-weight'?: number
  readonly rerank?: boolean
  readonly filter?: string
  readonly where?: string[]
  readonly saved?: string
  readonly explain: boolean
}

/** Base class of search commands. */
export abstract class SearchCommand extends WbCommand {
  /** Returns the question from the command line, or prompts for it. */
  protected async question(argument: string | undefined): Promise<string> {
    const errorMessage = 'QUESTION is missing: type search terms or a question'
    return argument ?? this.ask('What do you want to know?', errorMessage)
  }

  protected async searchAndPrint(question: string, base: KnowledgeBase | WorkspaceScope, flags: SearchFlags) {
    const { client, signal, output, resolveContext } = this
    const body = {
      text: question,
      filter: parseCondition(flags),
      knowledgeFilterId: await savedFilterId(resolveContext, base, flags.saved),
      ...rankingOptions({ ...flags, lexicalWeight: flags['lexical-weight'] }),
      ...shapingOptions(flags),
    }
    const context = { client, base, signal, body }
    if (output.json) {
      const options = { topK: flags.limit, includeCoverage: flags.explain, explain: flags.explain }
      return output.value(await this.waitFor('searching', search(context, options)))
    }
    const passages = await this.waitFor('searching', findPassages(context, flags))
    if (passages.length === 0) return output.note(await describeEmptyResult({ client, base, flags }))
    const names = 'names' in base ? base.names : undefined
    printPassages(output, question, passages, {
      ...flags,
      names,
      foldersOf: readIngestedFolders(this.profile),
    })
    if (storeSearch(this.profile, toCitedHits(base, passages)) && output.interactive)
      output.suggest('wb documents show 1')
  }
}

/** Returns the ID of the saved filter; undefined without a filter, or if all knowledge bases are searched. */
export async function savedFilterId(
  context: Pick<ResolveContext, 'client' | 'promptForChoice'>,
  base: KnowledgeBase | WorkspaceScope,
  reference: string | undefined,
): Promise<string | undefined> {
  if (reference === undefined || 'names' in base) return undefined
  return (await findFilter(context, base, reference)).knowledgeFilterId
}
