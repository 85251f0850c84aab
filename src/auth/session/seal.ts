/** Values that only this runtime can make and read: `v2.<iv>.<ciphertext>.<tag>`, AES-256-GCM. @see specification 2.5 */
export class Seal {
  /** @param secrets  the first one seals, all of them open */
  constructor(readonly secrets: readonly string[]) {}

  /** @param purpose  authenticated with the value: what was sealed for one purpose opens for no other */
  seal(_purpose: string, _text: string): string {
    throw new Error('not written')
  }

  /** @returns undefined for what was not sealed here for this purpose */
  open(_purpose: string, _value: string): string | undefined {
    throw new Error('not written')
  }
}
