import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { kb as kbRoutes } from '../../contract/knowledge.ts'
import type { EvalSettings } from '../../evaluation/eval-result.ts'
import { WbCommand } from '../command/command.ts'
import type { SearchMode } from '../passages/ranking-options.ts'
import { searchFlags } from '../passages/search-command.ts'
import { loadQuestions } from './load-questions.ts'
import { type EvalContext, openEvalContext } from './measure-settings.ts'

/** Argument of commands that measure questions. */
export const questionsArg = Args.string({
  required: true,
  ignoreStdin: true,
  description: 'YAML file with questions, .jsonl file of judgments, or folder in BEIR format',
})

const { mode, 'lexical-weight': lexicalWeight, rerank } = searchFlags
/** Flags that change the ranking, as in `wb kb search`. */
export const rankingFlags = { mode, 'lexical-weight': lexicalWeight, rerank }

/** Flags of all commands that search for questions. */
export const evalFlags = {
  kb: Flags.string({ char: 'k', summary: 'knowledge base name or ID [the only one]', helpValue: 'NAME' }),
  split: Flags.string({ summary: 'judgments of a BEIR folder: a file in qrels [test]', helpValue: 'NAME' }),
}

/** Base class of commands that search for questions. */
export abstract class EvalCommand extends WbCommand {
  /** Reads the questions, and looks up their documents in the knowledge base. */
  protected async openContext(
    questions: string,
    flags: { readonly kb?: string; readonly split?: string },
  ): Promise<EvalContext> {
    const { client, io, output, progress, signal } = this
    const set = loadQuestions(io.cwd, questions, flags.split)
    const base = await this.knowledgeBase(flags.kb)
    const { workspaceId, knowledgeBaseId, name } = base
    const { embedder, sentences } = await client.call(kbRoutes.show, {
      params: { workspaceId, knowledgeBaseId },
    })
    if (embedder?.state === 'fitting' || sentences?.state === 'embedding')
      output.warn(`  ! the vectors of ${name} are not complete yet, so the metrics will change`)
    return this.waitFor('reading', openEvalContext({ client, base, set, progress, signal }, output))
  }
}

/** Returns the settings of {@link rankingFlags}. */
export function settingsOf(flags: {
  readonly mode?: SearchMode
  readonly 'lexical-weight'?: number
  readonly rerank?: boolean
}): EvalSettings {
  return {
    ...(flags.mode && { mode: flags.mode }),
    ...(flags['lexical-weight'] !== undefined && { lexicalWeight: flags['lexical-weight'] }),
    ...(flags.rerank && { rerank: true }),
  }
}
