import type { KeyCost } from '../../src/auth/keys/token.ts'

/** Key derivation in less than a millisecond. Processes that share a store need `productionCost`. */
export const lowCost: KeyCost = { N: 2, r: 1, p: 1 }
