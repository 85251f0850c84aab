import * as Flags from '@oclif/core/flags'

/** What `create` and `update` say of an agent. */
export const agentFlags = {
  description: Flags.string({ summary: 'what it is for' }),
  prompt: Flags.string({ summary: 'how it is to answer: its system prompt', helpValue: 'TEXT' }),
  kb: Flags.string({
    char: 'k',
    multiple: true,
    summary: 'knowledge base, by name or id; may be given again [all of them]',
  }),
  tool: Flags.string({
    multiple: true,
    summary: 'tool, as wb agents tools lists them; may be given again [every built-in one]',
    helpValue: 'ID',
  }),
  llm: Flags.string({ summary: 'LLM service, by name or id', helpValue: 'NAME' }),
}
