/** A part of highlighted code. */
export interface Node {
  readonly type: string
  readonly value?: string
  readonly properties?: { readonly className?: unknown }
  readonly children?: readonly Node[]
}
export type Grammar = (library: unknown) => unknown
/** Grammars by language name. */
export const common: Readonly<Record<string, Grammar>>
export function createLowlight(): {
  register(language: string, grammar: Grammar): void
  registered(language: string): boolean
  highlight(language: string, code: string): Node
}
